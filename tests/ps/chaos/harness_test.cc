// Tests the parts that watch a scene.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "absl/time/time.h"
#include "tests/ps/chaos/limit.h"
#include "tests/ps/chaos/record.h"

namespace penstock::ps {
namespace {

RecordedPush PushOf(uint64_t number, uint64_t run) {
  RecordedPush push;
  push.number = number;
  push.run = run;
  push.ids = {{number}};
  push.owners = {0};
  return push;
}

// Removes the records of this program's earlier runs.
std::string NewRecord(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  unlink(path.c_str());
  return path;
}

TEST(RecordTest, LinesAreReadOnce) {
  const std::string path = NewRecord("once");
  RecordReader reader(path);
  reader.Read();
  EXPECT_EQ(reader.pushes().size(), 0U);
  {
    std::ofstream file(path);
    file << "note begins\npush 1 5 0 0 1 0 1 1\nack 1\npush 2 5 0 1";
  }
  reader.Read();
  EXPECT_EQ(reader.pushes().size(), 1U);
  {
    std::ofstream file(path, std::ios::app);
    file << " 1 0 1 2\nack 2\n";
  }
  reader.Read();
  ASSERT_EQ(reader.pushes().size(), 2U);
  EXPECT_EQ(reader.pushes()[1].ids, (PushIds{{2}}));
  EXPECT_EQ(reader.acknowledged(), 2U);
  EXPECT_EQ(reader.last_note(), "note begins");
}

TEST(RecordTest, ALaterAcknowledgedPushOfTheRunSettlesAPush) {
  const std::string path = NewRecord("settled");
  Recorder recorder(path);
  for (uint64_t number = 1; number <= 4; ++number) {
    recorder.Begin(PushOf(number, number == 4 ? 6 : 5));
    if (number != 2) recorder.Acknowledge(number);
  }
  RecordReader reader(path);
  reader.Read();
  ASSERT_EQ(reader.pushes().size(), 4U);
  EXPECT_TRUE(reader.pushes()[0].is_settled);
  EXPECT_FALSE(reader.pushes()[1].is_settled) << "not acknowledged";
  EXPECT_FALSE(reader.pushes()[2].is_settled) << "the last one of its run";
  EXPECT_FALSE(reader.pushes()[3].is_settled);
}

// Tests a reader that is slower than the writer. The reader must return
// nevertheless.
TEST(RecordTest, AReadEndsWhileTheRecordGrows) {
  const std::string path = NewRecord("grows");
  Recorder recorder(path);
  uint64_t number = 0;
  const auto push = [&] {
    recorder.Begin(PushOf(++number, 5));
    recorder.Acknowledge(number);
  };
  while (number < 20000) push();
  std::atomic<bool> ends{false};
  std::thread writer([&] {
    while (!ends) push();
  });
  RecordReader reader(path);
  reader.Read();
  ends = true;
  writer.join();
  EXPECT_GE(reader.acknowledged(), 20000U);
}

TEST(LimitDeathTest, ProgramEndsWithTheReport) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const Limit limit(absl::ZeroDuration(), [] { return "the report"; });
        pause();
      },
      testing::ExitedWithCode(1), "not done after 0\nthe report");
}

TEST(LimitTest, NothingHappensToATestThatIsDone) {
  const Limit limit(absl::Hours(1), [] { return "too early"; });
}

}  // namespace
}  // namespace penstock::ps
