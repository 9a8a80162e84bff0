#include "tests/ps/seeds.h"

#include <cstdio>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "gtest/gtest.h"

namespace penstock::ps {
namespace {

Seeds chosen;

bool Read(absl::string_view argument, absl::string_view flag, uint64_t* value) {
  return absl::ConsumePrefix(&argument, flag) &&
         absl::SimpleAtoi(argument, value);
}

}  // namespace

void Seeds::Print() const {
  std::printf("seeds %s\n", absl::StrCat(first, " to ", end() - 1).c_str());
}

const Seeds& ChosenSeeds() { return chosen; }

std::string RepeatWith(uint64_t seed) {
  return absl::StrCat("repeat with --seeds=1 --first=", seed);
}

int RunWithSeeds(int argc, char** argv, uint64_t count) {
  testing::InitGoogleTest(&argc, argv);
  chosen.count = count;
  for (int i = 1; i < argc; ++i) {
    if (!Read(argv[i], "--seeds=", &chosen.count) &&
        !Read(argv[i], "--first=", &chosen.first)) {
      std::fprintf(stderr, "%s [--seeds=N] [--first=S]\n", argv[0]);
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}

}  // namespace penstock::ps
