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

// Longer than the time between two lines; who is silent for longer hangs.
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

// Waits until a process has output, or has ended.
absl::Status Await(const std::vector<Process*>& running,
                   std::vector<Process*>* ready) {
  std::vector<pollfd> polls;
  polls.reserve(running.size());
  for (const Process* process : running) {
    polls.push_back({process->output(), POLLIN, 0});
  }
  if (poll(polls.data(), polls.size(), kSilenceLimitMs) <= 0) {
    return absl::DeadlineExceededError(
        "no worker has said a word for a minute");
  }
  ready->clear();
  for (size_t i = 0; i < polls.size(); ++i) {
    if (polls[i].revents != 0) ready->push_back(running[i]);
  }
  return absl::OkStatus();
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

absl::Status Cluster::RunWorkers(const std::string& program,
                                 const std::vector<std::string>& flags,
                                 const OnLine& on_line) {
  std::vector<Process> workers;
  workers.reserve(workers_);
  std::vector<Process*> running;
  for (Process& server : servers_) running.push_back(&server);
  for (unsigned rank = 0; rank < workers_; ++rank) {
    std::vector<std::string> all = flags;
    all.push_back(absl::StrCat("--servers=", absl::StrJoin(addresses_, ",")));
    all.push_back(absl::StrCat("--rank=", rank));
    auto process = Process::Start(program, all);
    if (!process.ok()) return process.status();
    workers.push_back(*std::move(process));
    running.push_back(&workers.back());
  }
  std::vector<Process*> ready;
  while (running.size() > servers_.size()) {
    absl::Status status = Await(running, &ready);
    if (!status.ok()) return status;
    for (Process* process : ready) {
      const bool more = process->ReadSome();
      while (absl::optional<std::string> line = process->NextLine()) {
        status = on_line(process - workers.data(), *line);
        if (!status.ok()) return status;
      }
      if (more) continue;
      status = process->Wait();
      if (!status.ok()) return status;
      running.erase(std::find(running.begin(), running.end(), process));
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
