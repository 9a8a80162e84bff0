// Which differences from stock gRPC are allowed, since stock gRPC's own races
// decide, and what holds nevertheless.

#ifndef PENSTOCK_TESTS_ORACLE_RULES_H_
#define PENSTOCK_TESTS_ORACLE_RULES_H_

#include <string>

#include "tests/oracle/outcome.h"
#include "tests/oracle/program.h"

namespace penstock::oracle {

// What of a call's outcome stock gRPC itself repeats. The rest is a race.
struct Certainty {
  bool status = false;
  bool metadata = false;  // that the client receives
  bool messages = false;  // and what the server's handler sees
};
Certainty CertaintyOf(const Program& program, const Plan& plan);

// What breaks a rule that holds whoever wins; empty where nothing does.
// 1. What comes is a beginning of what was sent: in order, unchanged, no gap.
// 2. With the server's status come all its messages and all its metadata.
// 3. OK is nobody's but the server's.
// 4. Other codes are those of what happened to the call.
std::string BrokenRule(const Program& program, const Plan& plan,
                       const Outcome& outcome);

// What is wrong with how a call ended, where stock gRPC ended it as in `stock`.
std::string Judge(const Program& program, const Plan& plan,
                  const Outcome& stock, const Outcome& outcome);

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_RULES_H_
