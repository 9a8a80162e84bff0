// Executes a plan on either side of its call.

#ifndef PENSTOCK_TESTS_ORACLE_PLAYER_H_
#define PENSTOCK_TESTS_ORACLE_PLAYER_H_

#include <functional>

#include "tests/oracle/client_call.h"
#include "tests/oracle/meeting.h"
#include "tests/oracle/outcome.h"
#include "tests/oracle/program.h"
#include "tests/oracle/server_call.h"

namespace penstock::oracle {

// The metadata key by which a server finds the plan of a call.
constexpr char kPlanKey[] = "oracle-call";

// Plays the client's side. For `settle`, see Exchange.
void PlayClient(const Plan& plan, const std::shared_ptr<grpc::Channel>& channel,
                grpc::CompletionQueue* queue, Meeting* meeting,
                const std::function<void()>& settle, Outcome* outcome);

// Plays the server's side.
void PlayServer(const Plan& plan, ServerCall* call, Meeting* meeting,
                const std::function<void()>& settle, Outcome* outcome);

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_PLAYER_H_
