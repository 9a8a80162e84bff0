// Runs one fuzz target without libFuzzer.
//
//   NAME_fuzz_test                       runs the seeds, then 20,000 mutations,
//                                        for 5 seconds at most
//   NAME_fuzz_test --write-seeds=FOLDER  only writes the seeds to the folder
//   NAME_fuzz_test FILE...               runs these inputs, such as of a crash
//
// Prints an input that ends the process in hexadecimal.

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/mutator.h"
#include "tests/fuzz/target.h"

// Defined if a sanitizer is linked.
extern "C" void __sanitizer_set_death_callback(void (*)(void))
    __attribute__((weak));

namespace penstock {
namespace fuzz {
namespace {

// Limit the mutated inputs of a run, and its time. Most targets take less than
// a second. Targets with sockets take longer.
constexpr int kMutations = 20000;
constexpr std::chrono::seconds kMostTime{5};
constexpr char kWriteSeeds[] = "--write-seeds=";

// The current input, which OnSignal() prints.
const std::string* current = nullptr;

void PrintCurrent() {
  if (current == nullptr) return;
  std::fprintf(stderr, "input of %zu bytes: ", current->size());
  for (char byte : *current) {
    std::fprintf(stderr, "%02x", static_cast<unsigned char>(byte));
  }
  std::fprintf(stderr, "\n");
}

// Prints the current input. stdio is unsafe in a signal handler, but the
// process is ending anyway.
void OnSignal(int number) {
  PrintCurrent();
  signal(number, SIG_DFL);
  raise(number);
}

void PrintOnDeath() {
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(PrintCurrent);
  }
  for (int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    signal(number, OnSignal);
  }
}

void RunOne(const std::string& input) {
  current = &input;
  // Makes a separate copy, so that a sanitizer detects reads beyond its end.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  current = nullptr;
}

int WriteSeeds(const std::string& folder) {
  int number = 0;
  for (const std::string& seed : Seeds()) {
    std::ofstream out(folder + "/seed-" + std::to_string(number++),
                      std::ios::binary);
    out << seed;
    if (!out.flush()) return 1;
  }
  return 0;
}

int RunFiles(char** first, char** end) {
  for (char** name = first; name != end; ++name) {
    std::ifstream in(*name, std::ios::binary);
    if (!in) {
      std::fprintf(stderr, "cannot read %s\n", *name);
      return 1;
    }
    RunOne(std::string(std::istreambuf_iterator<char>(in), {}));
  }
  return 0;
}

int RunAll() {
  const std::vector<std::string> seeds = Seeds();
  for (const std::string& seed : seeds) RunOne(seed);
  RunOne(std::string());
  Mutator mutator(seeds, /*random_seed=*/1);
  const auto end = std::chrono::steady_clock::now() + kMostTime;
  int mutations = 0;
  while (mutations < kMutations && std::chrono::steady_clock::now() < end) {
    RunOne(mutator.Next());
    ++mutations;
  }
  std::printf("%zu seeds, %d mutations\n", seeds.size(), mutations);
  return 0;
}

}  // namespace
}  // namespace fuzz
}  // namespace penstock

int main(int argc, char** argv) {
  using penstock::fuzz::kWriteSeeds;
  penstock::fuzz::PrintOnDeath();
  if (argc == 1) return penstock::fuzz::RunAll();
  const std::string first = argv[1];
  const size_t prefix = sizeof(kWriteSeeds) - 1;
  if (first.compare(0, prefix, kWriteSeeds) == 0) {
    return penstock::fuzz::WriteSeeds(first.substr(prefix));
  }
  return penstock::fuzz::RunFiles(argv + 1, argv + argc);
}
