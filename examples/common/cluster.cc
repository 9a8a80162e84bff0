#include "examples/common/cluster.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"

namespace penstock::examples {
namespace {

// Limits the milliseconds between two lines of a process's output. A process
// that is silent for longer hangs.
constexpr int kSilenceLimitMs = 60 * 1000;

absl::StatusOr<std::string> ReadAddress(Process* server) {
  absl::optional<std::string> line;
  while (!(line = server->NextLine()).has_value()) {
    if (server->ReadSome()) continue;
    absl::Status status = server->Wait();
    if (!status.ok()) return status;
    return absl::InternalError("ps_server ended before it listened");
  }
  absl::string_view port = *line;
  if (!absl::ConsumePrefix(&port, "port ")) {
    return absl::InternalError(absl::StrCat("ps_server said: ", *line));
  }
  return absl::StrCat("127.0.0.1:", port);
}

// A process that is still running, and its output.
struct Running {
  Process* process;
  absl::optional<unsigned> rank;  // empty for a server
};

// Blocks until at least one process has output or has ended. Returns these
// processes.
absl::StatusOr<std::vector<Running>> Await(
    const std::vector<Running>& running) {
  std::vector<pollfd> polls;
  polls.reserve(running.size());
  for (const Running& one : running) {
    polls.push_back({one.process->output(), POLLIN, 0});
  }
  if (poll(polls.data(), polls.size(), kSilenceLimitMs) <= 0) {
    return absl::DeadlineExceededError(
        "no worker has printed a line for a minute: they hang, or a step takes "
        "more than two seconds");
  }
  std::vector<Running> ready;
  for (size_t i = 0; i < polls.size(); ++i) {
    if (polls[i].revents != 0) ready.push_back(running[i]);
  }
  return ready;
}

// Reads and handles the output of a process. Returns true if the process
// continues. The end of a process is an error, except for a worker that
// succeeded.
absl::StatusOr<bool> Follow(const Running& running,
                            const OnProgress& on_progress) {
  const bool more = running.process->ReadSome();
  while (absl::optional<std::string> line = running.process->NextLine()) {
    if (!running.rank.has_value()) continue;
    auto progress = ReadProgress(*line);
    if (!progress.ok()) return progress.status();
    if (*running.rank == 0) on_progress(progress->step, progress->loss);
  }
  if (more) return true;
  absl::Status status = running.process->Wait();
  if (!status.ok()) return status;
  if (running.rank.has_value()) return false;
  return absl::InternalError("a ps_server ended before the workers");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Cluster>> Cluster::Start(unsigned servers,
                                                        unsigned workers) {
  auto program = FindProgram("ps_server", "../../ps/ps_server");
  if (!program.ok()) return program.status();
  std::unique_ptr<Cluster> cluster(new Cluster(workers));
  for (unsigned i = 0; i < servers; ++i) {
    auto process =
        Process::Start(*program, {"--listen=127.0.0.1:0", "--quiet",
                                  absl::StrCat("--workers=", workers)});
    if (!process.ok()) return process.status();
    cluster->servers_.push_back(*std::move(process));
    auto address = ReadAddress(&cluster->servers_.back());
    if (!address.ok()) return address.status();
    cluster->addresses_.push_back(*std::move(address));
  }
  return cluster;
}

absl::StatusOr<std::vector<Process>> Cluster::StartWorkers(
    const std::string& program, const std::vector<std::string>& flags) const {
  std::vector<Process> workers;
  workers.reserve(workers_);
  for (unsigned rank = 0; rank < workers_; ++rank) {
    std::vector<std::string> all = flags;
    all.push_back(absl::StrCat("--servers=", absl::StrJoin(addresses_, ",")));
    all.push_back(absl::StrCat("--rank=", rank));
    auto process = Process::Start(program, all);
    if (!process.ok()) return process.status();
    workers.push_back(*std::move(process));
  }
  return workers;
}

absl::Status Cluster::RunWorkers(const std::string& program,
                                 const std::vector<std::string>& flags,
                                 const OnProgress& on_progress) {
  auto workers = StartWorkers(program, flags);
  if (!workers.ok()) return workers.status();
  std::vector<Running> running;
  running.reserve(servers_.size() + workers->size());
  for (Process& server : servers_) running.push_back({&server, absl::nullopt});
  for (unsigned rank = 0; rank < workers_; ++rank) {
    running.push_back({&(*workers)[rank], rank});
  }
  while (running.size() > servers_.size()) {
    const auto ready = Await(running);
    if (!ready.ok()) return ready.status();
    for (const Running& one : *ready) {
      const auto goes_on = Follow(one, on_progress);
      if (!goes_on.ok()) return goes_on.status();
      if (*goes_on) continue;
      running.erase(std::find_if(running.begin(), running.end(),
                                 [&one](const Running& other) {
                                   return other.process == one.process;
                                 }));
    }
  }
  return absl::OkStatus();
}

absl::Status Cluster::Stop() {
  for (Process& server : servers_) server.Terminate();
  for (Process& server : servers_) {
    absl::Status status = server.Wait();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace penstock::examples
