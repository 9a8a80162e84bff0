// The rules for outcomes: the differences that are allowed because stock gRPC
// has races, and the rules that hold in all cases.

#ifndef PENSTOCK_TESTS_ORACLE_RULES_H_
#define PENSTOCK_TESTS_ORACLE_RULES_H_

#include <string>

#include "tests/oracle/outcome.h"
#include "tests/oracle/program.h"

namespace penstock::oracle {

// The deterministic parts of a call's outcome over stock gRPC. Other parts are
// races.
struct Certainty {
  bool status = false;
  bool metadata = false;  // received by the client
  bool messages = false;  // and the results of the server's handler
};
Certainty CertaintyOf(const Program& program, const Plan& plan);

// Returns the rule that the outcome breaks, or an empty string. The rules:
//
//   1. Received messages are a prefix of the sent ones: in order, unchanged.
//   2. The server's status comes with all its messages and all its metadata.
//   3. Only the server returns OK.
//   4. Other codes match the events of the call.
std::string BrokenRule(const Program& program, const Plan& plan,
                       const Outcome& outcome);

// Returns the error in a call's end. `stock` is the end of the same call over
// stock gRPC.
std::string Judge(const Program& program, const Plan& plan,
                  const Outcome& stock, const Outcome& outcome);

// Returns true if the status message of a failed call shows a bug of gRPC
// 1.51.1. gRPC reads the errno of connect() after other calls
// (tcp_client_posix.cc), which may have changed errno. gRPC then treats a
// pending connection as failed. Stock gRPC has the bug, too, and Penstock does
// nothing before there is a connection. The sign is EINVAL, which connect()
// does not return for a server's address.
bool TellsOfMisreadConnect(const std::string& message);

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_RULES_H_
