// Estimates which algorithm of each operation is fastest, for 2 to 1,024 ranks
// and 4 bytes to 256 MiB. The tests' simulator checks that the schedules take
// the steps and bytes from which this program computes times. See
// docs/lab/2026-11-30-algorithms-up-to-1024-ranks.md.

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "collectives/schedule/choice.h"
#include "collectives/schedule/plan.h"

namespace penstock::collectives {
namespace {

constexpr int kMostRanks = 1024;
constexpr int64_t kMostBytes = int64_t{256} << 20;
constexpr int64_t kElement = 4;  // f32

constexpr Operation kOperations[] = {
    Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather,
    Operation::kBroadcast, Operation::kReduce};

// Returns the host of each rank. `per_host` consecutive ranks are on one host.
std::vector<int> HostsOf(int ranks, int per_host) {
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(rank / per_host);
  return hosts;
}

void Print(const Choice& choice, int64_t bytes) {
  const auto print = [](const Estimate& estimate, const char* before) {
    std::printf("%s\"%s\": %.1f", before,
                std::string(Name(estimate.plan.algorithm)).c_str(),
                estimate.microseconds);
  };
  const Plan& plan = choice.chosen.plan;
  std::printf(
      "{\"operation\": \"%s\", \"ranks\": %d, \"bytes\": %lld, "
      "\"algorithm\": \"%s\", ",
      std::string(Name(plan.operation)).c_str(), plan.ranks,
      static_cast<long long>(bytes), std::string(Name(plan.algorithm)).c_str());
  print(choice.chosen, "\"us\": {");
  for (const Estimate& other : choice.others) print(other, ", ");
  std::printf("}}\n");
}

int Run(int argc, char** argv) {
  Question question;
  question.element_size = kElement;
  int per_host = 1;
  CLI::App app("Prints a line of JSON for each operation, size and rank count");
  app.add_option("--step-us", question.between_hosts.step_us,
                 "The time of a message without bytes, between hosts");
  app.add_option("--byte-us", question.between_hosts.byte_us,
                 "The time of a byte, between hosts");
  app.add_option("--inside-step-us", question.inside_host.step_us,
                 "The time of a message without bytes, within a host");
  app.add_option("--inside-byte-us", question.inside_host.byte_us,
                 "The time of a byte, within a host");
  app.add_option("--reduce-byte-us", question.reduce_byte_us,
                 "The time to reduce a byte");
  app.add_option("--ranks-per-host", per_host, "The ranks of each host")
      ->check(CLI::Range(1, kMostRanks));
  CLI11_PARSE(app, argc, argv);
  for (const Operation operation : kOperations) {
    question.operation = operation;
    for (int ranks = 2; ranks <= kMostRanks; ranks *= 2) {
      question.hosts = HostsOf(ranks, per_host);
      for (int64_t bytes = kElement; bytes <= kMostBytes; bytes *= 4) {
        question.count = bytes / kElement;
        const auto choice = Choose(question, {});
        if (!choice.ok()) {
          std::fprintf(stderr, "%s\n",
                       std::string(choice.status().message()).c_str());
          return 1;
        }
        Print(*choice, bytes);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace penstock::collectives

int main(int argc, char** argv) {
  return penstock::collectives::Run(argc, argv);
}
