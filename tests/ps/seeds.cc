#include "tests/ps/seeds.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace penstock::ps {
namespace {

std::unique_ptr<Seeds> chosen;

bool Read(absl::string_view argument, absl::string_view flag, uint64_t* value) {
  return absl::ConsumePrefix(&argument, flag) &&
         absl::SimpleAtoi(argument, value);
}

absl::Duration DefaultTime() {
  int seconds = 5;
  if (const char* text = std::getenv("SEEDS_SECONDS")) {
    (void)absl::SimpleAtoi(text, &seconds);
  }
  return absl::Seconds(seconds);
}

// Returns the first seed: 1, so that a gate always runs the same seeds, or a
// random number.
uint64_t DefaultFirst() {
  const char* const text = std::getenv("SEEDS_FIRST");
  const bool is_random = text != nullptr && absl::string_view(text) == "random";
  return is_random ? uint64_t{1} + std::random_device()() : 1;
}

}  // namespace

bool Seeds::Wants(uint64_t seed) {
  if (seed == first_) end_ = absl::Now() + time_;
  const bool wanted =
      seed == first_ || (seed - first_ < count_ && absl::Now() < end_);
  ran_ = seed - first_ + (wanted ? 1 : 0);
  return wanted;
}

void Seeds::Print() const {
  std::printf("seeds %s\n",
              absl::StrCat(first_, " to ", first_ + ran_ - 1).c_str());
}

Seeds& ChosenSeeds() { return *chosen; }

std::string RepeatWith(uint64_t seed) {
  return absl::StrCat("repeat with --seeds=1 --first=", seed);
}

void RunEachSeed(const std::function<void(uint64_t seed)>& run) {
  for (uint64_t seed = ChosenSeeds().first(); ChosenSeeds().Wants(seed);
       ++seed) {
    SCOPED_TRACE(RepeatWith(seed));
    run(seed);
    if (testing::Test::HasFailure()) return;
  }
  ChosenSeeds().Print();
}

void Print(const EventCounts& counts) {
  for (const auto& [event, count] : counts) {
    std::printf("%9llu %s\n", static_cast<unsigned long long>(count),
                event.c_str());
  }
}

int RunWithSeeds(int argc, char** argv, uint64_t count) {
  testing::InitGoogleTest(&argc, argv);
  uint64_t first = DefaultFirst();
  absl::Duration time = DefaultTime();
  for (int i = 1; i < argc; ++i) {
    if (Read(argv[i], "--seeds=", &count)) {
      time = absl::InfiniteDuration();
    } else if (!Read(argv[i], "--first=", &first)) {
      std::fprintf(stderr, "%s [--seeds=N] [--first=S]\n", argv[0]);
      return 2;
    }
  }
  chosen = std::make_unique<Seeds>(first, count, time);
  return RUN_ALL_TESTS();
}

}  // namespace penstock::ps
