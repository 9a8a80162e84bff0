// Which differences from stock gRPC are allowed, because stock gRPC itself has
// races there, and which rules always hold.

#ifndef PENSTOCK_TESTS_ORACLE_RULES_H_
#define PENSTOCK_TESTS_ORACLE_RULES_H_

#include <string>

#include "tests/oracle/outcome.h"
#include "tests/oracle/program.h"

namespace penstock::oracle {

// Which parts of a call's outcome stock gRPC repeats. The rest is a race.
struct Certainty {
  bool status = false;
  bool metadata = false;  // that the client receives
  bool messages = false;  // and what the server's handler sees
};
Certainty CertaintyOf(const Program& program, const Plan& plan);

// Returns how the outcome breaks a rule that always holds; an empty string if
// it breaks none. The rules:
//
//   1. What comes is a beginning of what was sent: in order, unchanged, no gap.
//   2. With the server's status come all its messages and all its metadata.
//   3. Only the server says OK.
//   4. Other codes are those of what happened to the call.
std::string BrokenRule(const Program& program, const Plan& plan,
                       const Outcome& outcome);

// Returns what is wrong with how a call ended, if stock gRPC ended it as in
// `stock`.
std::string Judge(const Program& program, const Plan& plan,
                  const Outcome& stock, const Outcome& outcome);

// Whether the message of a call that failed tells of a connection that gRPC
// 1.51.1 misread. It looks at the errno of connect() only after other calls
// (tcp_client_posix.cc), which may have changed it, and then takes a connection
// that is on its way for one that has failed. Stock gRPC does so, too, and
// Penstock is not asked before there is a connection. Known by EINVAL, which
// connect() does not say of a server's address.
bool TellsOfMisreadConnect(const std::string& message);

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_RULES_H_
