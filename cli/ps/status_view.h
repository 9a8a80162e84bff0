// Formats the output of `penstock ps status`.

#ifndef PENSTOCK_CLI_PS_STATUS_VIEW_H_
#define PENSTOCK_CLI_PS_STATUS_VIEW_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "cli/text/output.h"
#include "ps/wire/ps.pb.h"

namespace penstock::cli {

struct ServerStatus {
  std::string name;     // as the user wrote it
  absl::Status status;  // the error if there is no report
  ps::v1::ServerReport report;
};

// Returns the newest view that a server has reported; null if shards are not
// replicated, or there is no view yet.
const ps::v1::GetViewReply* NewestView(
    const std::vector<ServerStatus>& servers);

// Returns a line for each shard that lacks backups or a live replica, and for
// servers that do not follow etcd.
std::vector<std::string> ReplicaProblems(
    const std::vector<ServerStatus>& servers);

// Returns a line for each problem that needs attention: a server that does not
// answer, has ended its training, or belongs to another training. A worker that
// is slow, late or has not joined yet is not a problem.
std::vector<std::string> Problems(const std::vector<ServerStatus>& servers);

// Returns a line for each server whose last checkpoint failed, with the age of
// the last good one. Such a failure does not prevent the next checkpoint.
std::vector<std::string> CheckpointProblems(
    const std::vector<ServerStatus>& servers);

// Returns the lines of Problems(), ReplicaProblems() and CheckpointProblems().
std::vector<std::string> AllProblems(const std::vector<ServerStatus>& servers);

// Returns tables of servers, workers and tables, and the problems. Lists the
// slowest workers and the largest tables first.
std::string StatusText(const std::vector<ServerStatus>& servers,
                       const Output& out);
// Returns one JSON object with all reports.
std::string StatusJson(const std::vector<ServerStatus>& servers);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_PS_STATUS_VIEW_H_
