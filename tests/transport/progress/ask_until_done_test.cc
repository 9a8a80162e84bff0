#include "transport/progress/ask_until_done.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace penstock {
namespace progress {
namespace {

TEST(AskUntilDoneTest, AsksUntilItIsDoneAndNoMore) {
  std::atomic<int> asked{0};
  absl::Notification done;
  ASSERT_TRUE(AskUntilDone([&] {
                if (++asked < 10) return false;
                done.Notify();
                return true;
              }).ok());
  done.WaitForNotification();
  // Asks another question as often. The first would be asked again meanwhile.
  std::atomic<int> others{0};
  absl::Notification others_done;
  ASSERT_TRUE(AskUntilDone([&] {
                if (++others < 10) return false;
                others_done.Notify();
                return true;
              }).ok());
  others_done.WaitForNotification();
  EXPECT_EQ(asked, 10);
}

TEST(AskUntilDoneTest, OneThatIsNeverDoneHoldsUpNoOther) {
  std::atomic<bool> ends{false};
  absl::Notification ended;
  ASSERT_TRUE(AskUntilDone([&] {
                if (!ends) return false;
                ended.Notify();
                return true;
              }).ok());
  std::vector<std::unique_ptr<absl::Notification>> others;
  for (int i = 0; i < 100; ++i) {
    others.push_back(std::make_unique<absl::Notification>());
    absl::Notification* const done = others.back().get();
    ASSERT_TRUE(AskUntilDone([done] {
                  done->Notify();
                  return true;
                }).ok());
  }
  for (const auto& done : others) done->WaitForNotification();
  ends = true;
  ended.WaitForNotification();
}

TEST(AskUntilDoneTest, MayBeCalledByWhatItAsks) {
  absl::Notification done;
  ASSERT_TRUE(AskUntilDone([&done] {
                return AskUntilDone([&done] {
                         done.Notify();
                         return true;
                       })
                    .ok();
              }).ok());
  done.WaitForNotification();
}

TEST(AskUntilDoneTest, IsThereInAChild) {
  std::atomic<bool> ends{false};
  std::atomic<pid_t> last{0};
  absl::Notification ended;
  ASSERT_TRUE(AskUntilDone([&] {
                last = getpid();
                if (!ends) return false;
                ended.Notify();
                return true;
              }).ok());
  while (last == 0) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    last = 0;
    absl::Notification done;
    const bool asks = AskUntilDone([&done] {
                        done.Notify();
                        return true;
                      }).ok();
    if (asks) done.WaitForNotification();
    _exit(asks && last == 0 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ends = true;
  ended.WaitForNotification();  // before the variables end
}

}  // namespace
}  // namespace progress
}  // namespace penstock
