#include "tests/transport/fabric/shm/child.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "gtest/gtest.h"

// Returns the options of ThreadSanitizer, which calls this function. Without
// this option, ThreadSanitizer kills a forked child that starts threads.
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

namespace penstock {
namespace fabric {
namespace shm {

ForkedChild::ForkedChild(const std::function<void()>& body) {
  std::fflush(nullptr);
  pid_ = fork();
  EXPECT_GE(pid_, 0);
  if (pid_ != 0) return;
  body();
  std::fflush(nullptr);
  _exit(testing::Test::HasFailure() ? 1 : 0);
}

ForkedChild::~ForkedChild() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  Join();
}

bool ForkedChild::Join() {
  int status = -1;
  if (pid_ < 0 || waitpid(pid_, &status, 0) != pid_) return false;
  pid_ = -1;
  EXPECT_EQ(status, 0) << "the child failed, or was killed";
  return status == 0;
}

void BecomeUser(uid_t uid) {
  ASSERT_EQ(setgid(uid), 0);
  ASSERT_EQ(setuid(uid), 0);
}

bool IsRoot() { return geteuid() == 0; }

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
