// What the applications on both sides saw of a call.

#ifndef PENSTOCK_TESTS_ORACLE_OUTCOME_H_
#define PENSTOCK_TESTS_ORACLE_OUTCOME_H_

#include <string>
#include <vector>

#include "grpcpp/support/status.h"
#include "tests/oracle/content.h"
#include "tests/oracle/program.h"

namespace penstock::oracle {

struct Outcome {
  // The client's.
  grpc::Status status;
  Metadata initial;
  Metadata trailing;
  std::vector<Digest> received;

  // The server's.
  int runs = 0;  // of its handler
  Metadata client_metadata;
  std::vector<Digest> server_received;
};

// Returns how two outcomes differ, a line for each difference, with the names
// in front; an empty string if applications see no difference.
std::string DifferenceOf(const std::string& a_name, const Outcome& a,
                         const std::string& b_name, const Outcome& b);

std::string ToText(const grpc::Status& status);

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_OUTCOME_H_
