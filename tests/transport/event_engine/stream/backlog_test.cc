#include "transport/event_engine/stream/backlog.h"

#include <random>
#include <string>

#include "gtest/gtest.h"
#include "tests/transport/event_engine/stream/ends.h"

namespace penstock {
namespace event_engine {
namespace {

TEST(BacklogTest, OnePieceIsNotCopied) {
  for (size_t size : {size_t{1}, Backlog::kSmallBytes}) {
    Backlog backlog;
    const memory::Bytes bytes = BytesOf(std::string(size, 'x'));
    backlog.Append(bytes);
    const memory::Payload taken = backlog.Take();
    ASSERT_EQ(taken.pieces().size(), 1u);
    EXPECT_EQ(taken.pieces()[0].data, bytes.data);
    EXPECT_EQ(backlog.size(), 0u);
    EXPECT_EQ(backlog.Take().size(), 0u);
  }
}

TEST(BacklogTest, SmallNeighboursAreOnePiece) {
  Backlog backlog;
  for (int i = 0; i < 1000; ++i) backlog.Append(BytesOf("x"));
  EXPECT_EQ(backlog.size(), 1000u);
  const memory::Payload taken = backlog.Take();
  EXPECT_EQ(taken.pieces().size(), 1u);
  EXPECT_EQ(TextOf(taken), std::string(1000, 'x'));
}

TEST(BacklogTest, CopiedPiecesReleaseTheirOwners) {
  Backlog backlog;
  backlog.Append(BytesOf("a"));
  memory::Bytes bytes = BytesOf("b");
  const std::weak_ptr<const void> owner = bytes.owner;
  backlog.Append(std::move(bytes));
  EXPECT_TRUE(owner.expired());
}

TEST(BacklogTest, AnySizesKeepTheirOrder) {
  std::mt19937 random(1);
  for (int run = 0; run < 100; ++run) {
    Backlog backlog;
    std::string all;
    size_t pieces = 0;
    while (random() % 50 > 0) {
      const size_t size = random() % (size_t{1} << random() % 13);
      std::string text;
      for (size_t i = 0; i < size; ++i) {
        text.push_back(static_cast<char>(random()));
      }
      backlog.Append(BytesOf(text));
      all += text;
      pieces += size >= Backlog::kSmallBytes ? 2 : 0;
    }
    ASSERT_EQ(backlog.size(), all.size());
    const memory::Payload taken = backlog.Take();
    ASSERT_EQ(TextOf(taken), all);
    ASSERT_LE(taken.pieces().size(),
              pieces + 1 + all.size() / Backlog::kSmallBytes);
  }
}

}  // namespace
}  // namespace event_engine
}  // namespace penstock
