#include "transport/fabric/shm/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "gtest/gtest.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint64_t kBytes = 1 << 16;

base::UniqueFd Duplicate(int fd) {
  return base::UniqueFd(fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

// Returns a memfd as a hostile peer would make it.
base::UniqueFd Memfd(uint64_t size, int seals, bool allocate) {
  base::UniqueFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size)), 0);
  if (allocate) {
    EXPECT_EQ(posix_fallocate(fd.get(), 0, static_cast<off_t>(size)), 0);
  }
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

constexpr int kAllSeals = F_SEAL_SHRINK | F_SEAL_GROW | 0x10 | F_SEAL_SEAL;

TEST(Segment, PeerSeesWhatItsOwnerWrites) {
  auto segment = Segment::Create("test", kBytes);
  ASSERT_TRUE(segment.ok()) << segment.status();
  auto peer = PeerSegment::Map(Duplicate(segment->fd()), kBytes);
  ASSERT_TRUE(peer.ok()) << peer.status();
  segment->data()[kBytes - 1] = 77;
  EXPECT_EQ(peer->data()[kBytes - 1], 77);
}

TEST(Segment, NobodyElseWritesItShrinksItOrPunchesHoles) {
  auto segment = Segment::Create("test", kBytes);
  ASSERT_TRUE(segment.ok()) << segment.status();
  const int fd = segment->fd();
  EXPECT_EQ(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
            MAP_FAILED);
  EXPECT_EQ(pwrite(fd, "x", 1, 0), -1);
  EXPECT_EQ(ftruncate(fd, 0), -1);
  EXPECT_NE(
      fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, kBytes), 0);
}

TEST(Segment, PeersMappingCannotBeMadeWritable) {
  auto segment = Segment::Create("test", kBytes);
  auto peer = PeerSegment::Map(Duplicate(segment->fd()), kBytes);
  ASSERT_TRUE(peer.ok()) << peer.status();
  EXPECT_NE(mprotect(const_cast<uint8_t*>(peer->data()), kBytes,
                     PROT_READ | PROT_WRITE),
            0);
}

TEST(Segment, IsClosedOnExec) {
  auto segment = Segment::Create("test", kBytes);
  ASSERT_TRUE(segment.ok()) << segment.status();
  EXPECT_TRUE(fcntl(segment->fd(), F_GETFD) & FD_CLOEXEC);
}

TEST(Segment, MoreThanMemoryIsRefused) {
  EXPECT_TRUE(absl::IsResourceExhausted(
      Segment::Create("test", ~uint64_t{0}).status()));
}

TEST(PeerSegment, WhatCouldVanishIsRefused) {
  // Leaves out one seal each time. Each memfd has the right size and is
  // allocated.
  for (int missing : {F_SEAL_SHRINK, F_SEAL_GROW, 0x10, F_SEAL_SEAL}) {
    auto peer =
        PeerSegment::Map(Memfd(kBytes, kAllSeals & ~missing, true), kBytes);
    EXPECT_TRUE(absl::IsFailedPrecondition(peer.status())) << missing;
  }
  EXPECT_TRUE(PeerSegment::Map(Memfd(kBytes, kAllSeals, true), kBytes).ok());
}

TEST(PeerSegment, UnallocatedIsRefused) {
  auto peer = PeerSegment::Map(Memfd(kBytes, kAllSeals, false), kBytes);
  EXPECT_TRUE(absl::IsFailedPrecondition(peer.status())) << peer.status();
}

TEST(PeerSegment, PagesBehindTheEndDoNotMakeUpForHoles) {
  base::UniqueFd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(fd.get(), kBytes), 0);
  ASSERT_EQ(fallocate(fd.get(), FALLOC_FL_KEEP_SIZE, kBytes, kBytes), 0);
  ASSERT_EQ(fcntl(fd.get(), F_ADD_SEALS, kAllSeals), 0);
  auto peer = PeerSegment::Map(std::move(fd), kBytes);
  EXPECT_TRUE(absl::IsFailedPrecondition(peer.status())) << peer.status();
}

TEST(PeerSegment, AnotherSizeThanAnnouncedIsRefused) {
  for (uint64_t announced :
       {uint64_t{0}, kBytes - 1, kBytes + 1, kBytes * 2, ~uint64_t{0}}) {
    auto peer = PeerSegment::Map(Memfd(kBytes, kAllSeals, true), announced);
    EXPECT_TRUE(absl::IsInvalidArgument(peer.status())) << announced;
  }
}

TEST(PeerSegment, OtherDescriptorsAreRefused) {
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  base::UniqueFd in(pipe_fds[1]);
  base::UniqueFd others[] = {
      base::UniqueFd(pipe_fds[0]),
      base::UniqueFd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)),
      base::UniqueFd(open("/dev/zero", O_RDONLY | O_CLOEXEC)),
  };
  for (base::UniqueFd& fd : others) {
    EXPECT_TRUE(fd.valid());
    EXPECT_FALSE(PeerSegment::Map(std::move(fd), kBytes).ok());
  }
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
