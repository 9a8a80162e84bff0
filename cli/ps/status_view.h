// What `penstock ps status` shows of the servers of a training.

#ifndef PENSTOCK_CLI_PS_STATUS_VIEW_H_
#define PENSTOCK_CLI_PS_STATUS_VIEW_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/text/output.h"
#include "ps/wire/ps.pb.h"

namespace penstock::cli {

struct ServerStatus {
  std::string name;     // as it was given
  absl::Status status;  // why there is no report
  ps::v1::ServerReport report;
};

// Returns a line for each thing that somebody has to see to: a server that does
// not answer, has ended its training, or is not of the training of the others.
// What is slow, late or not there yet is no problem.
std::vector<std::string> Problems(const std::vector<ServerStatus>& servers);

// Tables of servers, workers and tables, and the problems. Workers that are
// behind come first, and tables by their bytes.
std::string StatusText(const std::vector<ServerStatus>& servers,
                       const Output& out);
// One JSON object: each report in full.
std::string StatusJson(const std::vector<ServerStatus>& servers);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_PS_STATUS_VIEW_H_
