#include "transport/fabric/tcp/read_table.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace penstock {
namespace fabric {
namespace tcp {
namespace {

constexpr uint64_t kCookie = 7;

class ReadTableTest : public testing::Test {
 protected:
  // Expects a read of the first chunk of a pushed region.
  bool Expect(uint64_t number, uint64_t cookie = kCookie) {
    return table_.Expect(RemotePart{number | kPushed, 0, sizeof into_}, 0,
                         {absl::MakeSpan(into_), cookie});
  }
  static UnitHeader Push(uint64_t number, uint32_t length = sizeof into_) {
    return UnitHeader{length, UnitType::kPush, number | kPushed};
  }
  static UnitHeader Data(uint64_t number) {
    return UnitHeader{sizeof into_, UnitType::kReadData, number};
  }

  static uint8_t into_[5];
  ReadTable table_;
};

uint8_t ReadTableTest::into_[5];

TEST_F(ReadTableTest, RequestedReadsAreFoundByTheirNumbers) {
  const uint64_t first = table_.Request({absl::MakeSpan(into_), 10});
  const uint64_t second = table_.Request({absl::MakeSpan(into_), 11});
  EXPECT_EQ(table_.Find(Data(first))->cookie, 10u);
  EXPECT_EQ(table_.Take(Data(second)), absl::make_optional<uint64_t>(11));
  EXPECT_EQ(table_.Find(Data(second)), nullptr);
  EXPECT_EQ(table_.Take(Data(second)), absl::nullopt);
  EXPECT_FALSE(table_.empty());
  const UnitHeader error{0, UnitType::kReadError, first};
  EXPECT_EQ(table_.Take(error), absl::make_optional<uint64_t>(10));
  EXPECT_TRUE(table_.empty());
}

// Tests that a push never answers a requested read. The peer may choose any
// number, but pushes and reads are numbered separately.
TEST_F(ReadTableTest, PushDoesNotAnswerARequestedRead) {
  const uint64_t number = table_.Request({absl::MakeSpan(into_), kCookie});
  EXPECT_EQ(table_.Find({5, UnitType::kPush, number}), nullptr);
  ASSERT_TRUE(Expect(1));
  EXPECT_EQ(table_.Find({5, UnitType::kReadData, 1 | kPushed}), nullptr);
}

TEST_F(ReadTableTest, OnlyTheFirstChunkOfAPushedRegionIsExpected) {
  const ReadTable::Read read = {absl::MakeSpan(into_), kCookie};
  const uint64_t key = 1 | kPushed;
  EXPECT_FALSE(table_.Expect({1, 0, 5}, 0, read));
  EXPECT_FALSE(table_.Expect({key, 1, 5}, 0, read));
  EXPECT_FALSE(table_.Expect({key, 0, 10}, 5, read));
  EXPECT_FALSE(table_.Expect({key, 0, 6}, 0, read));
  EXPECT_TRUE(table_.Expect({key, 0, 5}, 0, read));
  EXPECT_FALSE(table_.Expect({key, 0, 5}, 0, read)) << "another read has it";
}

TEST_F(ReadTableTest, PushThatHasComeIsNotExpected) {
  ASSERT_TRUE(table_.BeginPush(Push(2)).ok());
  EXPECT_FALSE(Expect(1));
  EXPECT_FALSE(Expect(2));
  EXPECT_TRUE(Expect(3));
  EXPECT_EQ(table_.Find(Push(2)), nullptr);
}

TEST_F(ReadTableTest, PushesComeInOrderWithTheExpectedSizesAndAll) {
  ASSERT_TRUE(Expect(3));
  EXPECT_TRUE(table_.BeginPush(Push(2)).ok()) << "nobody waits for it";
  EXPECT_FALSE(table_.BeginPush(Push(2)).ok()) << "twice";
  EXPECT_FALSE(table_.BeginPush({5, UnitType::kPush, 9}).ok()) << "no such key";
  ReadTable other = table_;
  EXPECT_FALSE(other.BeginPush(Push(4)).ok()) << "3 was left out";
  other = table_;
  EXPECT_FALSE(other.BeginPush(Push(3, 4)).ok()) << "of another size";
  EXPECT_TRUE(table_.BeginPush({0, UnitType::kPushVoid, 3 | kPushed}).ok());
  EXPECT_EQ(table_.Take(Push(3)), absl::make_optional(kCookie));
}

TEST_F(ReadTableTest, AllReadsAreTakenInOrder) {
  ASSERT_TRUE(Expect(5, 3));
  ASSERT_TRUE(Expect(6, 4));
  table_.Request({absl::MakeSpan(into_), 1});
  table_.Request({absl::MakeSpan(into_), 2});
  EXPECT_EQ(table_.TakeAll(), (std::vector<uint64_t>{1, 2, 3, 4}));
  EXPECT_TRUE(table_.empty());
  EXPECT_TRUE(table_.TakeAll().empty());
}

}  // namespace
}  // namespace tcp
}  // namespace fabric
}  // namespace penstock
