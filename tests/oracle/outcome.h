// The results of a call that the applications of both sides see.

#ifndef PENSTOCK_TESTS_ORACLE_OUTCOME_H_
#define PENSTOCK_TESTS_ORACLE_OUTCOME_H_

#include <string>
#include <vector>

#include "grpcpp/support/status.h"
#include "tests/oracle/content.h"
#include "tests/oracle/program.h"

namespace penstock::oracle {

struct Outcome {
  // The results that the client sees.
  grpc::Status status;
  Metadata initial;
  Metadata trailing;
  std::vector<Digest> received;

  // The results that the server sees.
  int runs = 0;  // calls of the handler
  Metadata client_metadata;
  std::vector<Digest> server_received;
};

// Returns the differences between two outcomes, one per line. Each line begins
// with the names of the outcomes. Returns an empty string if applications see
// no difference.
std::string DifferenceOf(const std::string& a_name, const Outcome& a,
                         const std::string& b_name, const Outcome& b);

std::string ToText(const grpc::Status& status);

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_OUTCOME_H_
