#include "transport/base/unique_fd.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "gtest/gtest.h"

namespace penstock {
namespace base {
namespace {

int OpenSomething() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(UniqueFd, ClosesWhatItOwns) {
  const int fd = OpenSomething();
  {
    UniqueFd owner(fd);
    EXPECT_TRUE(owner.valid());
    EXPECT_EQ(owner.get(), fd);
    EXPECT_TRUE(IsOpen(fd));
  }
  EXPECT_FALSE(IsOpen(fd));
}

TEST(UniqueFd, OwnsNothingAtFirst) {
  UniqueFd none;
  EXPECT_FALSE(none.valid());
  EXPECT_LT(none.get(), 0);
  EXPECT_FALSE(UniqueFd(-1).valid());
}

TEST(UniqueFd, MovingHandsOver) {
  const int fd = OpenSomething();
  UniqueFd first(fd);
  UniqueFd second(std::move(first));
  EXPECT_FALSE(first.valid());
  EXPECT_EQ(second.get(), fd);
  EXPECT_TRUE(IsOpen(fd));
  const int other = OpenSomething();
  UniqueFd third(other);
  third = std::move(second);
  EXPECT_FALSE(second.valid());
  EXPECT_FALSE(IsOpen(other));
  EXPECT_EQ(third.get(), fd);
}

TEST(UniqueFd, MovingOntoItselfKeeps) {
  const int fd = OpenSomething();
  UniqueFd owner(fd);
  UniqueFd& same = owner;
  owner = std::move(same);
  EXPECT_EQ(owner.get(), fd);
  EXPECT_TRUE(IsOpen(fd));
}

TEST(UniqueFd, ReleaseGivesUpOwnership) {
  const int fd = OpenSomething();
  int released = -1;
  {
    UniqueFd owner(fd);
    released = owner.Release();
    EXPECT_FALSE(owner.valid());
  }
  EXPECT_EQ(released, fd);
  EXPECT_TRUE(IsOpen(fd));
  close(fd);
}

TEST(UniqueFd, ResetClosesTheOldOne) {
  const int first = OpenSomething();
  const int second = OpenSomething();
  UniqueFd owner(first);
  owner.Reset(second);
  EXPECT_FALSE(IsOpen(first));
  EXPECT_TRUE(IsOpen(second));
  owner.Reset();
  EXPECT_FALSE(IsOpen(second));
  EXPECT_FALSE(owner.valid());
}

}  // namespace
}  // namespace base
}  // namespace penstock
