#include "transport/base/token.h"

#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace penstock {
namespace base {
namespace {

TEST(NewToken, HasItsLengthAndNeverRepeats) {
  std::set<std::string> tokens;
  for (int i = 0; i < 1000; ++i) {
    absl::StatusOr<std::string> token = NewToken();
    ASSERT_TRUE(token.ok()) << token.status();
    EXPECT_EQ(token->size(), static_cast<size_t>(kTokenBytes));
    EXPECT_TRUE(tokens.insert(*token).second);
  }
}

TEST(NewToken, EveryByteIsRandom) {
  for (int at = 0; at < kTokenBytes; ++at) {
    std::set<char> values;
    for (int i = 0; i < 100; ++i) values.insert((*NewToken())[at]);
    EXPECT_GT(values.size(), 10u) << at;
  }
}

}  // namespace
}  // namespace base
}  // namespace penstock
