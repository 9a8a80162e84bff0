// oracle [--path=NAME] [--seed=N | --first=N] [--seeds=N] [--seconds=N]
// [--jobs=N] [--verbose]
//
// Runs random programs over stock gRPC and over a route: "shm", "shm-copy",
// "tcp", "tcp-tls", "verbs", or "stock" to test the oracle itself. Runs the
// program of one seed, or of N seeds starting with the first, until the time is
// up, with N programs in parallel. Prints differences, and exits with 1 if
// there are any.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "grpc/grpc.h"
#include "tests/e2e/adapter.h"
#include "tests/oracle/program.h"
#include "tests/oracle/rules.h"
#include "tests/oracle/world.h"

namespace penstock::oracle {
namespace {

struct Flags {
  std::string path = "shm";
  uint64_t seed = 1;
  uint64_t seeds = 1000;
  int seconds = 0;  // 0: no limit
  // The number of parallel programs. With an event engine only one, because a
  // program may break the paths of other programs; see World::HasMoved().
  int jobs = e2e::kIsEventEngine ? 1 : 4;
  bool verbose = false;
};

// The seed of the newest program. After a hang or a crash, the cause is this
// program or a program that runs in parallel.
std::atomic<uint64_t> latest{0};

void OnSignal(int number) {
  char text[80];
  const int size = std::snprintf(
      text, sizeof text, "\nsignal %d at --seed=%llu or one before\n", number,
      static_cast<unsigned long long>(latest));
  if (write(STDOUT_FILENO, text, size) < 0) _exit(2);
  signal(number, SIG_DFL);
  raise(number);
}

bool HasMisreadConnect(const Result& result) {
  return std::any_of(result.complaints.begin(), result.complaints.end(),
                     TellsOfMisreadConnect) ||
         std::any_of(
             result.outcomes.begin(), result.outcomes.end(),
             [](const Outcome& outcome) {
               return TellsOfMisreadConnect(outcome.status.error_message());
             });
}

class Oracle {
 public:
  explicit Oracle(const Flags& flags)
      : flags_(flags),
        route_(*FindRoute(flags.path)),
        stock_(*FindRoute(route_.tls ? "stock-tls" : "stock")) {}

  // Returns true if there are no differences.
  bool Run() {
    std::vector<std::thread> threads;
    for (int i = 0; i < flags_.jobs; ++i) {
      threads.emplace_back([this] {
        while (const absl::optional<uint64_t> seed = NextSeed()) Try(*seed);
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::cout << "path " << flags_.path << ": " << begun_
              << " programs from seed " << flags_.seed << ", " << calls_
              << " calls, " << connections_ << " connections, " << of_path_
              << " of them over the path at their end, " << failures_
              << " failures, " << repeated_
              << " programs repeated for a connection that gRPC misread"
              << std::endl;
    const bool is_rare = repeated_ <= 1 + begun_ / 100;
    // The event engine does not see stock connections.
    const bool has_path = of_path_ > 0 || (route_.stock && e2e::kIsEventEngine);
    return failures_ == 0 && calls_ > 0 && has_path && is_rare;
  }

 private:
  absl::optional<uint64_t> NextSeed() {
    std::lock_guard<std::mutex> lock(mu_);
    const auto time = std::chrono::steady_clock::now() - begin_;
    const bool is_late =
        flags_.seconds > 0 && time > std::chrono::seconds(flags_.seconds);
    if (begun_ == flags_.seeds || is_late) return absl::nullopt;
    latest = flags_.seed + begun_++;
    if (flags_.verbose) {
      const Program program = MakeProgram(latest);
      std::cout << ToText(program) << std::endl;
      for (const Plan& plan : program.calls) {
        std::cout << " " << ToText(plan) << std::endl;
      }
    }
    return latest;
  }

  // Runs `program` over `route`. Repeats the run once if gRPC misread the
  // result of a connect(): see TellsOfMisreadConnect().
  Result Run(const Route& route, const Program& program) {
    Result result = World(route, program).Run();
    if (!HasMisreadConnect(result)) return result;
    ++repeated_;
    return World(route, program).Run();
  }

  void Try(uint64_t seed) {
    const Program program = MakeProgram(seed);
    const Result stock = Run(stock_, program);
    const Result result = Run(route_, program);
    std::lock_guard<std::mutex> lock(mu_);
    std::string text;
    for (const Plan& plan : program.calls) {
      ++calls_;
      // Skips calls of the rough channel. Stock gRPC may have ended their
      // connection because of too much metadata.
      if (route_.stock && plan.channel == kRoughChannel) continue;
      const std::string wrong =
          Judge(program, plan, stock.outcomes[plan.number],
                result.outcomes[plan.number]);
      if (wrong.empty()) continue;
      ++failures_;
      absl::StrAppend(&text, " ", ToText(plan), "\n", wrong);
    }
    // Reports a complaint about the run over stock gRPC, which shows an error
    // of the program itself.
    for (const std::string& complaint : stock.complaints) {
      ++failures_;
      absl::StrAppend(&text, " stock: ", complaint, "\n");
    }
    for (const std::string& complaint : result.complaints) {
      ++failures_;
      absl::StrAppend(&text, " ", complaint, "\n");
    }
    connections_ += result.paths.size();
    of_path_ +=
        std::count(result.paths.begin(), result.paths.end(), route_.fabric);
    if (text.empty()) return;
    std::cout << "FAILED: --path=" << flags_.path << " --seed=" << seed << "\n"
              << ToText(program) << "\n"
              << text << std::endl;
  }

  const Flags flags_;
  const Route& route_;
  const Route& stock_;
  const std::chrono::steady_clock::time_point begin_ =
      std::chrono::steady_clock::now();

  std::atomic<uint64_t> repeated_{0};
  std::mutex mu_;  // guards the following members and the output
  uint64_t begun_ = 0;
  uint64_t calls_ = 0;
  uint64_t connections_ = 0;
  uint64_t of_path_ = 0;
  uint64_t failures_ = 0;
};

bool Parse(int argc, char** argv, Flags* flags) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view flag = argv[i];
    if (absl::ConsumePrefix(&flag, "--path=")) {
      flags->path = std::string(flag);
    } else if (absl::ConsumePrefix(&flag, "--seed=")) {
      if (!absl::SimpleAtoi(flag, &flags->seed)) return false;
      flags->seeds = 1;
      flags->jobs = 1;
    } else if (absl::ConsumePrefix(&flag, "--first=")) {
      if (!absl::SimpleAtoi(flag, &flags->seed)) return false;
    } else if (absl::ConsumePrefix(&flag, "--seeds=")) {
      if (!absl::SimpleAtoi(flag, &flags->seeds)) return false;
    } else if (absl::ConsumePrefix(&flag, "--seconds=")) {
      if (!absl::SimpleAtoi(flag, &flags->seconds)) return false;
    } else if (absl::ConsumePrefix(&flag, "--jobs=")) {
      if (!absl::SimpleAtoi(flag, &flags->jobs)) return false;
    } else if (flag == "--verbose") {
      flags->verbose = true;
    } else {
      return false;
    }
  }
  return FindRoute(flags->path) != nullptr;
}

}  // namespace
}  // namespace penstock::oracle

int main(int argc, char** argv) {
  using namespace penstock::oracle;
  Flags flags;
  if (!Parse(argc, argv, &flags)) {
    std::cerr << "usage: oracle [--path=NAME] [--seed=N | --first=N] "
                 "[--seeds=N] [--seconds=N] [--jobs=N] [--verbose]"
              << std::endl;
    return 2;
  }
  for (int number : {SIGABRT, SIGSEGV, SIGBUS, SIGTERM}) {
    signal(number, OnSignal);
  }
  grpc_init();  // for all programs
  const bool ok = Oracle(flags).Run();
  std::cout << (ok ? "passed" : "failed") << std::endl;
  // Skips gRPC's shutdown, which may wait ten seconds after a large write.
  _exit(ok ? 0 : 1);
}
