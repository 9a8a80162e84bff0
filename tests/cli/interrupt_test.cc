// Tests which signals a command remembers, and which signal ends it.

#include "cli/interrupt.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "transport/base/steady_time.h"

namespace penstock::cli {
namespace {

// Runs `body` in a child until it ends. Returns the status of wait().
template <typename Body>
int InChild(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(Interrupted() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

// Tests two signals in quick succession. The program `timeout` signals the
// process, and then the process's group.
TEST(InterruptTest, TheSameSignalTwiceAtOnceIsRememberedOnly) {
  for (const int number : {SIGTERM, SIGINT}) {
    EXPECT_EQ(InChild([number] {
                WatchInterrupts();
                raise(number);
                raise(number);
                SleepUntil(absl::InfiniteFuture());
              }),
              0);
  }
}

// Sends signals until one of them, or SIGALRM, ends the process.
TEST(InterruptTest, OneThatComesLaterEndsTheProcess) {
  const int status = InChild([] {
    WatchInterrupts();
    raise(SIGINT);
    alarm(30);
    while (true) {
      raise(SIGTERM);
      absl::SleepFor(absl::Milliseconds(10));
    }
  });
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST(InterruptTest, SleepsByTheSteadyClock) {
  const absl::Time until = base::SteadyNow() + absl::Milliseconds(1);
  SleepUntil(until);
  EXPECT_GE(base::SteadyNow(), until);
}

TEST(InterruptTest, WithoutAnyThereIsNone) {
  EXPECT_EQ(InChild([] { WatchInterrupts(); }), 1 << 8);
}

}  // namespace
}  // namespace penstock::cli
