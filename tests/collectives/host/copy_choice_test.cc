#include "collectives/host/copy_choice.h"

#include <cstddef>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace penstock::collectives {
namespace {

constexpr size_t kBytes = 1 << 20;

// Runs `operations`, each of which takes the given time for its kind of copy.
// Returns the number of operations that used streaming copies.
int Operate(CopyChoice* choice, int operations, int plain_us, int streaming_us,
            size_t bytes = kBytes) {
  int streaming = 0;
  for (int i = 0; i < operations; ++i) {
    const bool streams = choice->Streams(bytes);
    streaming += streams ? 1 : 0;
    choice->Record(bytes, streams,
                   absl::Microseconds(streams ? streaming_us : plain_us));
  }
  return streaming;
}

TEST(CopyChoice, TriesBothKindsFirst) {
  CopyChoice choice;
  EXPECT_EQ(Operate(&choice, 2 * CopyChoice::kTry, 100, 100), CopyChoice::kTry);
}

TEST(CopyChoice, UsesTheFasterKindAndSeldomTriesTheOther) {
  CopyChoice plain_is_faster;
  EXPECT_LE(Operate(&plain_is_faster, 1000, 80, 130), 30);
  CopyChoice streaming_is_faster;
  EXPECT_GE(Operate(&streaming_is_faster, 1000, 450, 45), 970);
}

TEST(CopyChoice, FollowsAChange) {
  CopyChoice choice;
  Operate(&choice, 1000, 80, 130);
  EXPECT_GE(Operate(&choice, 100, 450, 45), 75);
  Operate(&choice, 1000, 450, 45);
  // Makes streaming copies only slightly slower. Only the next regular trial of
  // the other kind then finds the change.
  Operate(&choice, CopyChoice::kLastInterval, 20, 50);
  EXPECT_LE(Operate(&choice, 100, 20, 50), 10);
}

// Tests that each kind is tried for several operations, because the first
// operation after a change is slow.
TEST(CopyChoice, GivesAKindSeveralOperations) {
  CopyChoice choice;
  bool before = true;
  int streaming = 0;
  for (int i = 0; i < 1000; ++i) {
    const bool streams = choice.Streams(kBytes);
    const int plain_us = before ? 200 : 80;
    choice.Record(kBytes, streams,
                  absl::Microseconds(streams ? 130 : plain_us));
    streaming += streams ? 1 : 0;
    before = streams;
  }
  EXPECT_LE(streaming, 50);
}

TEST(CopyChoice, IsNotMovedByOneSlowOperation) {
  CopyChoice choice;
  Operate(&choice, 2 * CopyChoice::kTry, 80, 130);
  choice.Record(kBytes, false, absl::Milliseconds(4));
  EXPECT_EQ(Operate(&choice, 5, 80, 130), 0);
}

TEST(CopyChoice, KeepsSizesApart) {
  CopyChoice choice;
  Operate(&choice, 100, 80, 130);
  EXPECT_GE(Operate(&choice, 100, 900, 130, 8 * kBytes), 85);
  EXPECT_LE(Operate(&choice, 10, 80, 130), CopyChoice::kTry);
}

}  // namespace
}  // namespace penstock::collectives
