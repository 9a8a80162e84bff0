#include "bench/ps/contender.h"

#include <chrono>
#include <ctime>

#include "absl/strings/str_format.h"
#include "bench/rpc/report/statistics.h"

namespace penstock::bench {
namespace {

// Returns the CPU time of this process, in seconds.
double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

void DeclareFlags(CLI::App* app, const char* size_of, ContenderFlags* flags) {
  app->add_option("--mib", flags->mebibytes, size_of)
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app->add_option("--rounds", flags->rounds, "how often each runs, alternately")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  app->add_option("--threads", flags->threads,
                  "0: as many as there are processors")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
}

void RunAll(int rounds, std::vector<Contender>* contenders) {
  for (int round = -1; round < rounds; ++round) {
    for (size_t i = 0; i < contenders->size(); ++i) {
      Contender& one = (*contenders)[(i + static_cast<size_t>(round + 1)) %
                                     contenders->size()];
      const auto begin = std::chrono::steady_clock::now();
      const double cpu_begin = CpuSeconds();
      one.run();
      const double cpu_seconds = CpuSeconds() - cpu_begin;
      const std::chrono::duration<double> taken =
          std::chrono::steady_clock::now() - begin;
      if (round < 0) continue;
      one.seconds.push_back(taken.count());
      one.cpu_seconds.push_back(cpu_seconds);
    }
  }
}

std::string MillisecondsOf(const Contender& contender) {
  const Spread spread = SpreadOf(contender.seconds);
  return absl::StrFormat("%.2f (%.2f-%.2f)", Median(contender.seconds) * 1e3,
                         spread.min * 1e3, spread.max * 1e3);
}

}  // namespace penstock::bench
