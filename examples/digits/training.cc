#include "examples/digits/training.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "examples/digits/process.h"

namespace penstock::digits {
namespace {

// Steps that connections and memory pools take to warm up.
constexpr uint64_t kWarmUpSteps = 5;

// Longer than any step takes; a run without output for so long hangs.
constexpr int kSilenceLimitMs = 60 * 1000;

std::vector<std::string> ServerFlags(const RunOptions& options) {
  std::vector<std::string> flags = {
      "--listen=127.0.0.1:0", "--quiet",
      absl::StrCat("--workers=", options.workers),
      absl::StrCat("--learning-rate=", options.learning_rate)};
  if (options.stock) flags.push_back("--stock");
  return flags;
}

std::vector<std::string> WorkerFlags(const RunOptions& options, unsigned rank,
                                     const std::vector<std::string>& servers) {
  std::vector<std::string> flags = {
      absl::StrCat("--servers=", absl::StrJoin(servers, ",")),
      absl::StrCat("--rank=", rank),
      absl::StrCat("--workers=", options.workers),
      absl::StrCat("--steps=", options.steps),
      absl::StrCat("--batch=", options.batch),
      absl::StrCat("--hidden=", options.hidden),
      absl::StrCat("--seed=", options.seed)};
  if (options.stock) flags.push_back("--stock");
  return flags;
}

absl::StatusOr<std::string> ReadAddress(Process* server) {
  absl::optional<std::string> line;
  while (!(line = server->NextLine()).has_value()) {
    if (!server->ReadSome()) {
      absl::Status status = server->Wait();
      if (!status.ok()) return status;
      return absl::InternalError("ps_server ended before it listened");
    }
  }
  absl::string_view port = *line;
  if (!absl::ConsumePrefix(&port, "port ")) {
    return absl::InternalError(absl::StrCat("ps_server said: ", *line));
  }
  return absl::StrCat("127.0.0.1:", port);
}

double Median(std::vector<double>* values) {
  if (values->empty()) return 0;
  auto middle = values->begin() + values->size() / 2;
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

// What the workers' lines add up to.
class Ledger {
 public:
  Ledger(const Progress& progress) : progress_(progress) {}

  absl::Status Take(unsigned rank, const std::string& line) {
    std::pair<std::string, std::string> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (parts.first == "path") {
      if (rank == 0) result_.path = parts.second;
      return absl::OkStatus();
    }
    std::vector<double> numbers;
    for (absl::string_view field : absl::StrSplit(parts.second, ' ')) {
      numbers.emplace_back();
      if (!absl::SimpleAtod(field, &numbers.back())) return Bad(line);
    }
    if (parts.first == "step" && numbers.size() == 5) {
      TakeStep(rank, numbers);
    } else if (parts.first == "result" && numbers.size() == 2) {
      result_.accuracy = numbers[0];
      result_.final_loss = numbers[1];
      has_result_ = true;
    } else {
      return Bad(line);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<RunResult> Close() {
    if (!has_result_) return absl::InternalError("worker 0 gave no result");
    result_.pull_us = Median(&pull_);
    result_.push_us = Median(&push_);
    result_.wait_us = Median(&wait_);
    return result_;
  }

 private:
  static absl::Status Bad(const std::string& line) {
    return absl::InternalError(absl::StrCat("a worker said: ", line));
  }

  void TakeStep(unsigned rank, const std::vector<double>& numbers) {
    if (rank == 0) progress_(static_cast<unsigned>(numbers[0]) + 1, numbers[1]);
    if (numbers[0] < kWarmUpSteps) return;
    pull_.push_back(numbers[2]);
    push_.push_back(numbers[3]);
    wait_.push_back(numbers[4]);
  }

  const Progress& progress_;
  RunResult result_ = {};
  bool has_result_ = false;
  std::vector<double> pull_;
  std::vector<double> push_;
  std::vector<double> wait_;
};

// Reads all workers side by side until each has ended well. The servers'
// output is watched too: its end is their death.
absl::Status Follow(std::vector<Process>* servers,
                    std::vector<Process>* workers, Ledger* ledger) {
  std::vector<bool> running(workers->size(), true);
  while (std::find(running.begin(), running.end(), true) != running.end()) {
    std::vector<pollfd> polls;
    for (size_t i = 0; i < workers->size(); ++i) {
      // poll() passes over negative descriptors.
      polls.push_back({running[i] ? (*workers)[i].output() : -1, POLLIN, 0});
    }
    for (Process& server : *servers) {
      polls.push_back({server.output(), POLLIN, 0});
    }
    if (poll(polls.data(), polls.size(), kSilenceLimitMs) <= 0) {
      return absl::DeadlineExceededError("no progress for a minute");
    }
    for (size_t i = 0; i < polls.size(); ++i) {
      if (polls[i].revents == 0) continue;
      bool is_worker = i < workers->size();
      Process& process =
          is_worker ? (*workers)[i] : (*servers)[i - workers->size()];
      bool more = process.ReadSome();
      while (absl::optional<std::string> line = process.NextLine()) {
        absl::Status status = ledger->Take(i, *line);
        if (!status.ok()) return status;
      }
      if (more) continue;
      absl::Status status = process.Wait();
      if (!status.ok()) return status;
      if (!is_worker) return absl::InternalError("a ps_server ended too early");
      running[i] = false;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunResult> Train(const RunOptions& options,
                                const Progress& progress) {
  absl::Time start = absl::Now();
  auto server = FindProgram("ps_server", "../../ps/ps_server");
  if (!server.ok()) return server.status();
  auto worker = FindProgram("digits_worker", "digits_worker");
  if (!worker.ok()) return worker.status();
  std::vector<Process> servers;
  std::vector<std::string> addresses;
  for (unsigned i = 0; i < options.servers; ++i) {
    auto process = Process::Start(*server, ServerFlags(options));
    if (!process.ok()) return process.status();
    servers.push_back(*std::move(process));
    auto address = ReadAddress(&servers.back());
    if (!address.ok()) return address.status();
    addresses.push_back(*address);
  }
  std::vector<Process> workers;
  for (unsigned rank = 0; rank < options.workers; ++rank) {
    auto process =
        Process::Start(*worker, WorkerFlags(options, rank, addresses));
    if (!process.ok()) return process.status();
    workers.push_back(*std::move(process));
  }
  Ledger ledger(progress);
  absl::Status status = Follow(&servers, &workers, &ledger);
  if (!status.ok()) return status;
  for (Process& process : servers) process.Terminate();
  for (Process& process : servers) {
    absl::Status ended = process.Wait();
    if (!ended.ok()) return ended;
  }
  absl::StatusOr<RunResult> result = ledger.Close();
  if (result.ok()) result->seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return result;
}

}  // namespace penstock::digits
