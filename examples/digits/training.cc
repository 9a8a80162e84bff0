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
#include "absl/types/optional.h"

namespace penstock::digits {
namespace {

// The number of a round's first steps, which warm up connections, pools and
// caches.
constexpr uint64_t kWarmUpSteps = 5;

// Limits the milliseconds for which a training may be silent. Longer than any
// step, so a training that is silent for longer hangs.
constexpr int kSilenceLimitMs = 60 * 1000;

std::vector<std::string> ServerFlags(const RunOptions& options) {
  std::vector<std::string> flags = {
      "--listen=127.0.0.1:0", "--quiet",
      absl::StrCat("--workers=", options.workers)};
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
      absl::StrCat("--learning-rate=", options.learning_rate),
      absl::StrCat("--staleness=", options.staleness),
      absl::StrCat("--seed=", options.seed),
      "--gate"};
  if (options.stock) flags.push_back("--stock");
  return flags;
}

absl::StatusOr<std::string> ReadAddress(examples::Process* server) {
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

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  size_t half = values.size() / 2;
  auto middle = values.begin() + half;
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::string Summarize(const std::vector<RunResult::Path>& paths) {
  if (paths.empty()) return "unknown";
  bool agree = true;
  std::vector<std::string> all;
  for (const RunResult::Path& path : paths) {
    agree = agree && path.description == paths.front().description;
    all.push_back(absl::StrCat("worker ", path.worker, " - server ",
                               path.server, ": ", path.description));
  }
  return agree ? paths.front().description : absl::StrJoin(all, "; ");
}

// The lines that the workers print in one round.
class Training::Ledger {
 public:
  Ledger(size_t workers, const Progress& progress)
      : progress_(progress), at_gate_(workers, false) {}

  absl::Status Take(unsigned rank, const std::string& line) {
    std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (parts.first == "path") return TakePath(rank, line, parts.second);
    std::vector<double> numbers;
    for (absl::string_view field : absl::StrSplit(parts.second, ' ')) {
      numbers.emplace_back();
      if (!absl::SimpleAtod(field, &numbers.back())) return Bad(line);
    }
    if (parts.first == "step" && numbers.size() == 5) {
      TakeStep(rank, numbers);
    } else if (parts.first == "gate" && numbers.size() == 1) {
      at_gate_[rank] = true;
    } else if (parts.first == "result" && numbers.size() == 2) {
      result_.accuracy = numbers[0];
      result_.final_loss = numbers[1];
      has_result_ = true;
    } else {
      return Bad(line);
    }
    return absl::OkStatus();
  }

  bool AtGate(unsigned rank) const { return at_gate_[rank]; }

  StepTimes times() const {
    return {Median(pull_), Median(push_), Median(wait_)};
  }

  absl::StatusOr<RunResult> result() {
    if (!has_result_) return absl::InternalError("worker 0 gave no result");
    std::sort(result_.paths.begin(), result_.paths.end(),
              [](const RunResult::Path& a, const RunResult::Path& b) {
                return std::make_pair(a.worker, a.server) <
                       std::make_pair(b.worker, b.server);
              });
    return result_;
  }

 private:
  static absl::Status Bad(const std::string& line) {
    return absl::InternalError(absl::StrCat("a worker said: ", line));
  }

  absl::Status TakePath(unsigned rank, const std::string& line,
                        absl::string_view rest) {
    std::pair<absl::string_view, std::string> parts =
        absl::StrSplit(rest, absl::MaxSplits(' ', 1));
    unsigned server;
    if (!absl::SimpleAtoi(parts.first, &server)) return Bad(line);
    result_.paths.push_back({rank, server, parts.second});
    return absl::OkStatus();
  }

  void TakeStep(unsigned rank, const std::vector<double>& numbers) {
    if (rank == 0) progress_(static_cast<unsigned>(numbers[0]) + 1, numbers[1]);
    if (!first_step_.has_value()) first_step_ = numbers[0];
    if (numbers[0] < *first_step_ + kWarmUpSteps) return;
    pull_.push_back(numbers[2]);
    push_.push_back(numbers[3]);
    wait_.push_back(numbers[4]);
  }

  const Progress& progress_;
  std::vector<bool> at_gate_;
  absl::optional<double> first_step_;
  RunResult result_;
  bool has_result_ = false;
  std::vector<double> pull_;
  std::vector<double> push_;
  std::vector<double> wait_;
};

absl::Status Training::Follow(bool to_end, Ledger* ledger) {
  std::vector<bool> running(workers_.size(), true);
  while (std::find(running.begin(), running.end(), true) != running.end()) {
    std::vector<pollfd> polls;
    for (size_t i = 0; i < workers_.size(); ++i) {
      // Use -1 for ended workers, because poll() ignores negative descriptors.
      polls.push_back({running[i] ? workers_[i].output() : -1, POLLIN, 0});
    }
    for (examples::Process& server : servers_) {
      polls.push_back({server.output(), POLLIN, 0});
    }
    if (poll(polls.data(), polls.size(), kSilenceLimitMs) <= 0) {
      return absl::DeadlineExceededError("no progress for a minute");
    }
    for (size_t i = 0; i < polls.size(); ++i) {
      if (polls[i].revents == 0) continue;
      bool is_worker = i < workers_.size();
      examples::Process& process =
          is_worker ? workers_[i] : servers_[i - workers_.size()];
      bool more = process.ReadSome();
      while (absl::optional<std::string> line = process.NextLine()) {
        absl::Status status = ledger->Take(i, *line);
        if (!status.ok()) return status;
      }
      if (is_worker && more) running[i] = to_end || !ledger->AtGate(i);
      if (more) continue;
      absl::Status status = process.Wait();
      if (!status.ok()) return status;
      if (!is_worker || !to_end) {
        return absl::InternalError(absl::StrCat(
            is_worker ? "a worker" : "a ps_server", " ended too early"));
      }
      running[i] = false;
    }
  }
  return absl::OkStatus();
}

absl::Status Training::StartServers(std::vector<std::string>* addresses) {
  auto program = examples::FindProgram("ps_server", "../../ps/ps_server");
  if (!program.ok()) return program.status();
  for (unsigned i = 0; i < options_.servers; ++i) {
    auto process = examples::Process::Start(*program, ServerFlags(options_));
    if (!process.ok()) return process.status();
    servers_.push_back(*std::move(process));
    auto address = ReadAddress(&servers_.back());
    if (!address.ok()) return address.status();
    addresses->push_back(*address);
  }
  return absl::OkStatus();
}

absl::Status Training::StartWorkers(const std::vector<std::string>& addresses) {
  auto program = examples::FindProgram("digits_worker",
                                       "../../examples/digits/digits_worker");
  if (!program.ok()) return program.status();
  for (unsigned rank = 0; rank < options_.workers; ++rank) {
    auto process = examples::Process::Start(
        *program, WorkerFlags(options_, rank, addresses));
    if (!process.ok()) return process.status();
    workers_.push_back(*std::move(process));
  }
  return absl::OkStatus();
}

absl::Status Training::Tell(const std::string& line) {
  for (examples::Process& worker : workers_) {
    absl::Status status = worker.Tell(line);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Training>> Training::Start(
    const RunOptions& options) {
  std::unique_ptr<Training> training(new Training(options));
  std::vector<std::string> addresses;
  absl::Status status = training->StartServers(&addresses);
  if (status.ok()) status = training->StartWorkers(addresses);
  if (!status.ok()) return status;
  Progress ignore = [](unsigned, double) {};
  Ledger ledger(options.workers, ignore);
  status = training->Follow(/*to_end=*/false, &ledger);
  if (!status.ok()) return status;
  return training;
}

absl::Status Training::RunTo(unsigned step, const Progress& progress) {
  absl::Status status = Tell(absl::StrCat(step));
  if (!status.ok()) return status;
  Ledger ledger(workers_.size(), progress);
  status = Follow(/*to_end=*/false, &ledger);
  if (status.ok()) rounds_.push_back(ledger.times());
  return status;
}

absl::StatusOr<RunResult> Training::Finish() {
  absl::Status status = Tell(absl::StrCat(options_.steps));
  if (!status.ok()) return status;
  Progress ignore = [](unsigned, double) {};
  Ledger ledger(workers_.size(), ignore);
  status = Follow(/*to_end=*/true, &ledger);
  if (!status.ok()) return status;
  for (examples::Process& process : servers_) process.Terminate();
  for (examples::Process& process : servers_) {
    absl::Status ended = process.Wait();
    if (!ended.ok()) return ended;
  }
  absl::StatusOr<RunResult> result = ledger.result();
  if (!result.ok()) return result;
  std::vector<double> pull, push, wait;
  for (const StepTimes& round : rounds_) {
    pull.push_back(round.pull_us);
    push.push_back(round.push_us);
    wait.push_back(round.wait_us);
  }
  result->times = {Median(pull), Median(push), Median(wait)};
  return result;
}

}  // namespace penstock::digits
