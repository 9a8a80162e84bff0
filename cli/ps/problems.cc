#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/ps/status_view.h"
#include "transport/base/printable.h"

namespace penstock::cli {
namespace {

constexpr size_t kMaxTextBytes = 400;

std::string NameOf(const ServerStatus& server) {
  return base::Printable(server.name, kMaxTextBytes);
}

// Returns the first server that has a model, or null.
const ServerStatus* WithModel(const std::vector<ServerStatus>& servers) {
  for (const ServerStatus& each : servers) {
    if (each.status.ok() && each.report.run() != 0) return &each;
  }
  return nullptr;
}

// Returns the reason why the last checkpoint failed, with the age of the last
// good one. Empty if it did not fail.
std::string CheckpointProblemOf(const ServerStatus& server) {
  const ps::v1::ServerReport& report = server.report;
  if (report.checkpoint_failure().empty()) return "";
  return absl::StrCat(
      NameOf(server), ": checkpoints fail, ",
      report.checkpoint_failures_since(), " in a row: ",
      base::Printable(report.checkpoint_failure(), kMaxTextBytes), "; ",
      report.last_checkpoint_step() == 0
          ? "this server has completed none"
          : absl::StrCat(
                "the last good one is of step ", report.last_checkpoint_step(),
                ", ",
                absl::FormatDuration(absl::Trunc(
                    absl::Microseconds(report.last_checkpoint_age_us()),
                    absl::Seconds(1))),
                " ago"));
}

// Returns a line for each reason why servers do not follow etcd.
std::vector<std::string> EtcdProblems(
    const std::vector<ServerStatus>& servers) {
  std::vector<std::string> problems;
  std::set<std::string> known;
  for (const ServerStatus& each : servers) {
    const std::string& failure = each.report.view().etcd_failure();
    if (failure.empty() || !known.insert(failure).second) continue;
    problems.push_back(
        absl::StrCat(NameOf(each),
                     " answers, and does not follow etcd: shards do not move, "
                     "and no other server takes over. ",
                     base::Printable(failure, kMaxTextBytes)));
  }
  return problems;
}

// Returns the problem of a server, or "" if there is none. Also compares the
// server with `other`, which has a model, unless `other` is null.
std::string ProblemOf(const ServerStatus& server, const ServerStatus* other) {
  if (!server.status.ok()) {
    return base::Printable(server.status.message(), kMaxTextBytes);
  }
  if (!server.report.failure().empty()) {
    return absl::StrCat(
        NameOf(server), ": training has ended: ",
        base::Printable(server.report.failure(), kMaxTextBytes));
  }
  if (other == nullptr || server.report.run() == other->report.run()) return "";
  if (server.report.run() == 0) {
    return absl::StrCat(NameOf(server), " has no model, and ", NameOf(*other),
                        " has one: was it restarted? Start the training "
                        "again, or restore a checkpoint");
  }
  return absl::StrCat(NameOf(server), " is of another training than ",
                      NameOf(*other), ": stop the one that is left over");
}

}  // namespace

std::vector<std::string> Problems(const std::vector<ServerStatus>& servers) {
  std::vector<std::string> problems;
  const ServerStatus* const model = WithModel(servers);
  std::map<uint32_t, const ServerStatus*> places;
  for (const ServerStatus& each : servers) {
    std::string problem = ProblemOf(each, model);
    if (!problem.empty()) {
      problems.push_back(std::move(problem));
      continue;
    }
    if (each.report.run() == 0) continue;
    const auto [place, is_new] = places.emplace(each.report.server(), &each);
    if (is_new) continue;
    problems.push_back(absl::StrCat(
        NameOf(*place->second), " and ", NameOf(each), " are both server ",
        place->first, ": is it one server by two names?"));
  }
  return problems;
}

const ps::v1::GetViewReply* NewestView(
    const std::vector<ServerStatus>& servers) {
  const ps::v1::GetViewReply* newest = nullptr;
  for (const ServerStatus& each : servers) {
    const ps::v1::GetViewReply& view = each.report.view();
    if (!view.has_view()) continue;
    if (newest == nullptr || newest->view().number() < view.view().number()) {
      newest = &view;
    }
  }
  return newest;
}

std::vector<std::string> ReplicaProblems(
    const std::vector<ServerStatus>& servers) {
  std::vector<std::string> problems = EtcdProblems(servers);
  const ps::v1::GetViewReply* const newest = NewestView(servers);
  if (newest == nullptr) return problems;
  for (const uint32_t shard : newest->lost_shards()) {
    problems.push_back(absl::StrCat(
        "shard ", shard,
        " is lost: its primary and all its backups are gone. Restart all "
        "servers from a checkpoint"));
  }
  for (int i = 0; i < newest->view().shards().size(); ++i) {
    const ps::v1::ShardReplicas& shard = newest->view().shards(i);
    const auto backups = static_cast<uint32_t>(shard.backups().size());
    if (backups >= newest->replicas()) continue;
    problems.push_back(absl::StrCat(
        "shard ", i, " has ", backups, " of ", newest->replicas(), " backups",
        shard.joiners().empty()
            ? ": start the server that is missing"
            : absl::StrCat(
                  "; ",
                  base::Printable(shard.joiners(0).server(), kMaxTextBytes),
                  " catches up")));
  }
  return problems;
}

std::vector<std::string> CheckpointProblems(
    const std::vector<ServerStatus>& servers) {
  std::vector<std::string> problems;
  for (const ServerStatus& each : servers) {
    std::string problem = CheckpointProblemOf(each);
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  return problems;
}

std::vector<std::string> AllProblems(const std::vector<ServerStatus>& servers) {
  std::vector<std::string> problems = Problems(servers);
  for (std::string& each : ReplicaProblems(servers)) {
    problems.push_back(std::move(each));
  }
  for (std::string& each : CheckpointProblems(servers)) {
    problems.push_back(std::move(each));
  }
  return problems;
}

}  // namespace penstock::cli
