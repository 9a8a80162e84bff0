#include "tests/ps/chaos/cluster.h"

#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "tests/ps/chaos/trainer.h"

namespace penstock::ps {
namespace {

using process::Child;

// Limits the wait for a server that starts, in calls of Find(), each of which
// waits for ten seconds. A loaded machine may take longer than one call.
constexpr int kMostFinds = 6;

// Returns the port of a server that starts; nothing if the server has ended.
absl::optional<std::string> PortOf(Child* server) {
  absl::optional<std::string> port;
  for (int i = 0; i < kMostFinds && !port.has_value(); ++i) {
    port = server->Find("port ");
    if (!server->IsAlive()) break;
  }
  return port;
}

}  // namespace

std::string LogsIn(const std::string& folder) {
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (!absl::StartsWith(name, "record-")) continue;
    RecordReader record(entry.path());
    record.Read();
    absl::StrAppend(&text, name, ": ", record.pushes().size(), " pushes, ",
                    record.acknowledged(), " counted; ", record.last_note(),
                    "\n");
  }
  std::ifstream log(folder + "/log");
  text.append(std::istreambuf_iterator<char>(log), {});
  return text;
}

ProcessCluster::ProcessCluster(std::string folder,
                               std::vector<Staleness> policies,
                               uint32_t workers)
    : folder_(std::move(folder)),
      policies_(std::move(policies)),
      workers_(workers),
      records_(workers) {
  for (const char* name : {"/main", "/other"}) {
    std::filesystem::create_directory(folder_ + name);
  }
  log_ = open((folder_ + "/log").c_str(),
              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

bool ProcessCluster::FindPorts() {
  std::vector<std::unique_ptr<Child>> children;
  for (size_t server = 0; server < kMostServers; ++server) {
    children.push_back(Child::Start(
        {"ps/ps_server", "--listen=127.0.0.1:0", "--workers=1", "--quiet"}));
    if (children.back() == nullptr) return false;
    const auto port = PortOf(children.back().get());
    if (!port.has_value()) return false;
    ports_.push_back(absl::StrCat("127.0.0.1:", *port));
  }
  return true;
}

// Starts a server with a short lease and short waits, so that a test is fast.
void ProcessCluster::StartServer(size_t server, const How& how) {
  ServerPlace& place = servers_[server];
  place.child = nullptr;
  place.how = how;
  std::vector<std::string> command = {
      "ps/ps_server",
      absl::StrCat("--listen=", ports_[server]),
      absl::StrCat("--workers=", workers_.size()),
      "--lease=1",
      "--assemble=2",
      "--wait=10",
      absl::StrCat("--checkpoints=", folder_,
                   how.has_other_folder ? "/other" : "/main")};
  if (how.restores) command.push_back("--restore=newest");
  place.child = Child::Start(std::move(command), {}, log_);
  // Release the process of a server that has refused to start. Such a server
  // has ended without printing a port.
  if (place.child != nullptr && !PortOf(place.child.get()).has_value()) {
    place.child = nullptr;
  }
}

void ProcessCluster::KillAllServers(size_t servers) {
  if (servers != servers_.size()) {
    for (auto& worker : workers_) worker = nullptr;
  }
  servers_.clear();
  servers_.resize(servers);
}

void ProcessCluster::StartWorker(uint32_t rank) {
  constexpr uint64_t kPushesOfOne = 1000000;
  TrainerArguments arguments;
  arguments.rank = rank;
  arguments.first_push = ++started_ * kPushesOfOne;
  arguments.policies = policies_;
  arguments.record = absl::StrCat(folder_, "/record-", started_);
  arguments.servers = addresses();
  records_[rank].emplace_back(arguments.record);
  std::vector<std::string> command = {"/proc/self/exe", "--trainer"};
  const std::vector<std::string> strings = arguments.ToStrings();
  command.insert(command.end(), strings.begin(), strings.end());
  workers_[rank] = Child::Start(std::move(command), {}, log_);
}

int ProcessCluster::FinishWorker(uint32_t rank) {
  if (workers_[rank] == nullptr) return -1;
  const int code = workers_[rank]->Finish();
  workers_[rank] = nullptr;
  return code;
}

void ProcessCluster::ResumeAll() {
  for (ServerPlace& server : servers_) {
    if (server.child != nullptr) server.child->Resume();
  }
  for (auto& worker : workers_) {
    if (worker != nullptr) worker->Resume();
  }
}

bool ProcessCluster::AreServersProper() {
  for (ServerPlace& server : servers_) {
    if (server.child == nullptr || !server.child->IsAlive()) return false;
    if (!server.how.restores || server.how.has_other_folder) return false;
  }
  return true;
}

std::vector<std::string> ProcessCluster::addresses() const {
  return {ports_.begin(),
          ports_.begin() + static_cast<ptrdiff_t>(servers_.size())};
}

std::vector<RecordedPush> ProcessCluster::Pushes() {
  std::vector<RecordedPush> all;
  for (auto& of_rank : records_) {
    for (RecordReader& record : of_rank) {
      record.Read();
      all.insert(all.end(), record.pushes().begin(), record.pushes().end());
    }
  }
  return all;
}

size_t ProcessCluster::CountAcknowledged(uint32_t rank) {
  size_t count = 0;
  for (RecordReader& record : records_[rank]) {
    record.Read();
    count += record.acknowledged();
  }
  return count;
}

}  // namespace penstock::ps
