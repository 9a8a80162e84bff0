// Tests a socket in the process's PollSet.

#include "transport/grpc/input_poller.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/transport/base/set_clock.h"
#include "transport/base/steady_time.h"
#include "transport/base/unique_fd.h"
#include "transport/progress/poll_set.h"
#include "transport/progress/spin_policy.h"

namespace penstock {
namespace core {
namespace {

class InputPollerTest : public testing::Test {
 protected:
  InputPollerTest() {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    socket_ = base::UniqueFd(ends[0]);
    peer_ = base::UniqueFd(ends[1]);
  }

  void Start() {
    if (!poller_.TakePlace()) return;
    poller_.Start(socket_.get(), [this, share = share_] {
      ++receives_;
      if (poller_.is_quiet()) {
        poller_.Stop();
        return false;
      }
      char byte;
      return read(socket_.get(), &byte, 1) == 1;
    });
  }
  void Send() { EXPECT_EQ(write(peer_.get(), "x", 1), 1); }
  // Polls the socket until the poller gives up, as if each look took `time`.
  // Returns the number of looks, or a very large number.
  int LookUntilQuiet(absl::Duration time) {
    int looks = 0;
    for (; poller_.is_started() && looks < 1000 * 1000; ++looks) {
      MoveSteadyClockBy(time);
      set_->PollHot();
    }
    return looks;
  }

  progress::PollSet* const set_ = progress::PollSet::Get();
  base::UniqueFd socket_, peer_;
  std::shared_ptr<int> share_ = std::make_shared<int>();
  int receives_ = 0;
  InputPoller poller_;
};

TEST_F(InputPollerTest, PollingThreadReceives) {
  Start();
  EXPECT_FALSE(set_->PollHot());
  EXPECT_EQ(receives_, 0);
  Send();
  EXPECT_TRUE(set_->PollHot());
  EXPECT_EQ(receives_, 1);
  EXPECT_FALSE(set_->PollHot());
  EXPECT_EQ(receives_, 1);
}

TEST_F(InputPollerTest, EndOfTheStreamIsInput) {
  Start();
  peer_.Reset();
  EXPECT_FALSE(set_->PollHot()) << "nothing was read";
  EXPECT_EQ(receives_, 1);
}

TEST_F(InputPollerTest, QuietSocketIsNotPolledAnyMore) {
  Start();
  const absl::Time start = base::SteadyNow();
  LookUntilQuiet(absl::Microseconds(1));
  EXPECT_GT(base::SteadyNow() - start,
            absl::Nanoseconds(progress::SpinPolicy::kMaxNanos));
  EXPECT_TRUE(set_->empty());
  EXPECT_EQ(share_.use_count(), 1);
  Start();
  Send();
  EXPECT_TRUE(set_->PollHot());
}

// Tests slow looks, as in a round over many sockets. The limit is the time, not
// the number of looks.
TEST_F(InputPollerTest, ManySocketsAreNotPolledForLonger) {
  Start();
  EXPECT_LE(LookUntilQuiet(absl::Microseconds(20)), 52);
}

// Tests sleeps between the looks. Rare calls must also be polled for.
TEST_F(InputPollerTest, TimeWithoutLooksDoesNotCount) {
  Start();
  for (int i = 0; i < 10; ++i) {
    MoveSteadyClockBy(absl::Hours(1));
    set_->PollHot();
  }
  EXPECT_TRUE(poller_.is_started());
}

TEST_F(InputPollerTest, InputKeepsTheSocketInTheSet) {
  Start();
  for (int i = 0; i < 10; ++i) {
    for (int look = 0; look < 10; ++look) {
      MoveSteadyClockBy(absl::Microseconds(40));
      set_->PollHot();
    }
    Send();
    EXPECT_TRUE(set_->PollHot());
  }
  EXPECT_TRUE(poller_.is_started());
}

TEST_F(InputPollerTest, FewSocketsOfAProcessArePolled) {
  std::vector<std::unique_ptr<InputPoller>> pollers;
  int started = 0;
  for (int i = 0; i < 100; ++i) {
    pollers.push_back(std::make_unique<InputPoller>());
    if (!pollers.back()->TakePlace()) continue;
    pollers.back()->Start(socket_.get(), [] { return false; });
    ++started;
  }
  EXPECT_GT(started, 10);
  EXPECT_LT(started, 50);
  Start();
  EXPECT_FALSE(poller_.is_started());
  pollers.clear();
  Start();
  EXPECT_TRUE(poller_.is_started()) << "ended pollers make room";
}

TEST_F(InputPollerTest, StoppedPollerReceivesNothing) {
  Start();
  Send();
  poller_.Stop();
  EXPECT_FALSE(set_->PollAll());
  EXPECT_EQ(receives_, 0);
  EXPECT_EQ(share_.use_count(), 1);
  poller_.Stop();  // a second time, without effect
}

// Tests that the parent's sockets use up no places of the child's poller.
TEST_F(InputPollerTest, ForkedChildHasPlacesOfItsOwn) {
  std::vector<std::unique_ptr<InputPoller>> pollers;
  do {
    pollers.push_back(std::make_unique<InputPoller>());
  } while (pollers.back()->TakePlace());
  const pid_t child = fork();
  if (child == 0) {
    Start();
    if (!poller_.is_started()) _exit(1);
    Send();
    if (!progress::PollSet::Get()->PollHot()) _exit(2);
    pollers.clear();
    _exit(progress::PollSet::Get()->empty() ? 3 : 0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// Runs in a separate process, because the setting is read once.
TEST_F(InputPollerTest, NothingIsPolledInModeEvent) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  setenv("PENSTOCK_POLLING", "event", 1);
  EXPECT_EXIT(
      {
        Start();
        _exit(poller_.is_started() || !set_->empty() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
  unsetenv("PENSTOCK_POLLING");
}

}  // namespace
}  // namespace core
}  // namespace penstock
