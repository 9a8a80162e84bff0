#include "transport/grpc/metadata_table.h"

#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace penstock {
namespace core {
namespace {

// Calls Find() until the entry has a number, at most three times.
SentEntries::Number FindOften(SentEntries* sent, const std::string& entry) {
  SentEntries::Number found;
  for (int i = 0; i < 3 && found.number == 0; ++i) found = sent->Find(entry);
  return found;
}

TEST(SentEntries, SecondTimeGivesANumber) {
  SentEntries sent;
  EXPECT_EQ(sent.Find("first").number, 0);
  SentEntries::Number found = sent.Find("first");
  EXPECT_EQ(found.number, kFirstEntry);
  EXPECT_TRUE(found.is_new);
  found = sent.Find("first");
  EXPECT_EQ(found.number, kFirstEntry);
  EXPECT_FALSE(found.is_new);
  EXPECT_EQ(FindOften(&sent, "second").number, kFirstEntry + 1);
  EXPECT_EQ(sent.Find("first").number, kFirstEntry);
}

TEST(SentEntries, GivesNoMoreThanThereAre) {
  SentEntries sent;
  for (size_t i = 0; i < kMaxEntries; ++i) {
    EXPECT_EQ(FindOften(&sent, std::to_string(i)).number, kFirstEntry + i);
  }
  EXPECT_EQ(FindOften(&sent, "one more").number, 0);
  EXPECT_EQ(sent.Find("0").number, kFirstEntry);
}

// Tests that the receiver has room for every entry of the sender: both sides
// have the same limits.
TEST(SentEntries, PeerHasRoomForAll) {
  for (size_t size : {size_t{1}, size_t{100}, size_t{1000}, kMaxEntryBytes,
                      kMaxEntryBytes + 1}) {
    SentEntries sent;
    ReceivedEntries received;
    size_t numbers = 0;
    for (char letter = '0'; letter < 'z'; ++letter) {
      const std::string entry(size, letter);
      const SentEntries::Number found = FindOften(&sent, entry);
      if (!found.is_new) continue;
      ++numbers;
      ASSERT_TRUE(received.Add(found.number, entry).ok()) << size;
    }
    EXPECT_EQ(numbers, size > kMaxEntryBytes
                           ? 0
                           : std::min(kMaxEntries, kMaxTableBytes / size));
  }
}

TEST(ReceivedEntries, KeepsThem) {
  ReceivedEntries received;
  EXPECT_EQ(received.Find(kFirstEntry), nullptr);
  EXPECT_EQ(received.Find(0), nullptr);
  EXPECT_TRUE(received.Add(kFirstEntry, "first").ok());
  EXPECT_TRUE(received.Add(kFirstEntry + 1, "second").ok());
  EXPECT_EQ(received.Find(kFirstEntry)->as_string_view(), "first");
  EXPECT_EQ(received.Find(kFirstEntry + 1)->as_string_view(), "second");
  EXPECT_EQ(received.Find(kFirstEntry + 2), nullptr);
  EXPECT_EQ(received.Find(255), nullptr);
}

TEST(ReceivedEntries, RefusesNumbersOutOfOrder) {
  ReceivedEntries received;
  for (uint32_t number : {0u, 191u, 193u, 255u, 256u + 192u, ~0u}) {
    EXPECT_TRUE(absl::IsInvalidArgument(received.Add(number, "x"))) << number;
  }
  EXPECT_TRUE(received.Add(kFirstEntry, "x").ok());
  EXPECT_TRUE(absl::IsInvalidArgument(received.Add(kFirstEntry, "again")));
  for (uint32_t i = 1; i < kMaxEntries; ++i) {
    EXPECT_TRUE(received.Add(kFirstEntry + i, "x").ok());
  }
  EXPECT_TRUE(absl::IsInvalidArgument(received.Add(256, "one more")));
}

TEST(ReceivedEntries, RefusesWhatIsTooLong) {
  ReceivedEntries received;
  EXPECT_TRUE(absl::IsInvalidArgument(
      received.Add(kFirstEntry, std::string(kMaxEntryBytes + 1, 'x'))));
  ReceivedEntries many;
  const std::string entry(kMaxEntryBytes, 'x');
  for (uint32_t i = 0; i < kMaxTableBytes / kMaxEntryBytes; ++i) {
    EXPECT_TRUE(many.Add(kFirstEntry + i, entry).ok());
  }
  EXPECT_TRUE(absl::IsInvalidArgument(
      many.Add(kFirstEntry + kMaxTableBytes / kMaxEntryBytes, "x")));
}

}  // namespace
}  // namespace core
}  // namespace penstock
