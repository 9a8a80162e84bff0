#include "transport/base/printable.h"

#include <string>

#include "absl/strings/ascii.h"
#include "gtest/gtest.h"

namespace penstock {
namespace base {
namespace {

TEST(Printable, PlainTextStaysAsItIs) {
  EXPECT_EQ(Printable("a \"b\" c\\d ~", 100), "a \"b\" c\\d ~");
  EXPECT_EQ(Printable("", 100), "");
}

TEST(Printable, EveryOtherByteIsSpeltOut) {
  EXPECT_EQ(Printable("a\nb\x1b[2J\x7f\xc2\x9b", 100),
            R"(a\x0ab\x1b[2J\x7f\xc2\x9b)");
  for (int byte = 0; byte < 256; ++byte) {
    for (const char c : Printable(std::string(1, byte), 100)) {
      EXPECT_TRUE(absl::ascii_isprint(c)) << byte;
    }
  }
}

TEST(Printable, LongTextIsCutBetweenTwoBytesOfIt) {
  EXPECT_EQ(Printable("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(Printable("abcdefghi", 8), "abcde...");
  EXPECT_EQ(Printable("abc\n\n", 8), "abc...");
  EXPECT_EQ(Printable("ab\n", 2), "..");
  EXPECT_EQ(Printable("a", 0), "");
}

TEST(Printable, NeverExceedsItsSize) {
  for (size_t max = 0; max < 40; ++max) {
    for (size_t size = 0; size < 40; ++size) {
      EXPECT_LE(Printable(std::string(size, '\n'), max).size(), max);
      EXPECT_LE(Printable(std::string(size, 'x'), max).size(), max);
    }
  }
}

TEST(Printable, TwiceIsTheSameAsOnce) {
  const std::string once = Printable("a\n\\\x80 and more", 12);
  EXPECT_EQ(Printable(once, 12), once);
}

}  // namespace
}  // namespace base
}  // namespace penstock
