#include <map>

#include "absl/strings/str_cat.h"
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

// Returns the problem of a server, alone or compared with `other`, which has a
// model. Empty if there is none.
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
                        " has one: was it started anew? Start the training "
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

}  // namespace penstock::cli
