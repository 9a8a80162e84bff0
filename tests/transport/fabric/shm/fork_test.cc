// Tests processes that fork without exec while they have shared memory.

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/child.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/lent_segment.h"
#include "transport/fabric/shm/mapping.h"
#include "transport/fabric/shm/private_in_child.h"
#include "transport/fabric/shm/segment.h"
#include "transport/fabric/shm/user_arenas.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint64_t kMiB = 1 << 20;

std::shared_ptr<ArenaLease> LeaseOf(const std::shared_ptr<Arena>& arena,
                                    uint64_t size, int value) {
  std::shared_ptr<ArenaLease> lease = arena->Allocate(size).value();
  memset(lease->data(), value, size);
  return lease;
}

bool IsAll(const uint8_t* data, uint64_t size, int value) {
  return std::all_of(data, data + size,
                     [value](uint8_t byte) { return byte == value; });
}

bool IsAll(const ArenaLease& lease, int value) {
  return IsAll(lease.data(), lease.size(), value);
}

// Returns the mapping of a peer to which the segment was passed.
Mapping PeersView(const ArenaLease& lease) {
  return Mapping::Share(lease.place().segment_fd, lease.place().segment_size,
                        PROT_READ)
      .value();
}

// Returns true if a child that writes to `data` is killed for writing.
bool WritingKills(uint8_t* data) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);  // no report of a sanitizer
    *static_cast<volatile uint8_t*>(data) = 66;
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

TEST(ShmFork, ChildWritesToPagesOfItsOwn) {
  auto arena = Arena::Create(64 * kMiB);
  // Takes two leases, which lie in two segments.
  const auto first = LeaseOf(arena, 12 * kMiB, 1);
  const auto second = LeaseOf(arena, 12 * kMiB, 2);
  const Mapping peers = PeersView(*second);
  ForkedChild child([&] {
    EXPECT_TRUE(IsAll(*first, 1));
    EXPECT_TRUE(IsAll(*second, 2));
    memset(first->data(), 66, first->size());
    memset(second->data(), 66, second->size());
    EXPECT_TRUE(IsAll(*first, 66));
    EXPECT_TRUE(IsAll(*second, 66));
  });
  EXPECT_TRUE(child.Join());
  EXPECT_TRUE(IsAll(*first, 1));
  EXPECT_TRUE(IsAll(*second, 2));
  EXPECT_TRUE(IsAll(peers.data() + second->place().offset, second->size(), 2));
}

TEST(ShmFork, GrandchildWritesToPagesOfItsOwn) {
  auto arena = Arena::Create(16 * kMiB);
  const auto lease = LeaseOf(arena, kMiB, 1);
  ForkedChild child([&] {
    memset(lease->data(), 2, lease->size());
    ForkedChild grandchild([&] {
      EXPECT_TRUE(IsAll(*lease, 2));
      memset(lease->data(), 3, lease->size());
    });
    EXPECT_TRUE(grandchild.Join());
    EXPECT_TRUE(IsAll(*lease, 2));
  });
  EXPECT_TRUE(child.Join());
  EXPECT_TRUE(IsAll(*lease, 1));
}

TEST(ShmFork, ChildHasArenasOfItsOwn) {
  const auto lease = LeaseOf(ArenaFor(geteuid()).value(), kMiB, 1);
  ForkedChild child([&] {
    const auto own = LeaseOf(ArenaFor(geteuid()).value(), kMiB, 2);
    EXPECT_NE(own->data(), lease->data());
    EXPECT_TRUE(IsAll(*lease, 1));
    ForkedChild grandchild([&] { memset(own->data(), 3, own->size()); });
    EXPECT_TRUE(grandchild.Join());
    EXPECT_TRUE(IsAll(*own, 2));
  });
  EXPECT_TRUE(child.Join());
}

// Tests that the parent's arena is not used in the child. The child would lend
// its peers the parent's memory, without the child's writes.
TEST(ShmFork, ParentsArenaServesNothingInTheChild) {
  auto arena = Arena::Create(16 * kMiB);
  auto lease = LeaseOf(arena, kMiB, 1);
  ForkedChild child([&] {
    EXPECT_TRUE(absl::IsResourceExhausted(arena->Allocate(10).status()));
    EXPECT_FALSE(arena->Find(lease->data(), lease->size()).has_value());
    lease.reset();
    arena.reset();
  });
  EXPECT_TRUE(child.Join());
  EXPECT_EQ(arena->used(), kMiB);
}

TEST(ShmFork, SegmentsThatHaveGoneAreLeftAlone) {
  auto arena = Arena::Create(64 * kMiB);
  const auto lease = LeaseOf(arena, kMiB, 1);
  (void)Arena::Create(64 * kMiB)->Allocate(kMiB).value();
  auto last = Arena::Create(64 * kMiB);
  (void)last->Allocate(kMiB).value();
  last.reset();
  ForkedChild child([&] { lease->data()[0] = 66; });
  EXPECT_TRUE(child.Join());
  EXPECT_TRUE(IsAll(*lease, 1));
}

TEST(ShmFork, ChildOnlyReadsReservedPages) {
  Segment segment = Segment::Create("test", kMiB).value();
  memset(segment.data(), 1, segment.size());
  PrivateInChild reserved(segment, /*has_reserved_pages=*/true);
  ForkedChild reader(
      [&] { EXPECT_TRUE(IsAll(segment.data(), segment.size(), 1)); });
  EXPECT_TRUE(reader.Join());
  EXPECT_TRUE(WritingKills(segment.data()));
  EXPECT_TRUE(IsAll(segment.data(), segment.size(), 1));
}

// Tests a segment whose descriptor was closed. Some programs become a daemon by
// closing all descriptors above 2, and then reuse the numbers.
TEST(ShmFork, ChildOnlyReadsWhatHasLostItsDescriptor) {
  Segment segment = Segment::Create("test", kMiB).value();
  memset(segment.data(), 1, segment.size());
  PrivateInChild in_child(segment, /*has_reserved_pages=*/false);
  const base::UniqueFd other(open("/dev/zero", O_RDWR | O_CLOEXEC));
  const base::UniqueFd kept(dup(segment.fd()));
  ASSERT_EQ(dup2(other.get(), segment.fd()), segment.fd());
  EXPECT_TRUE(WritingKills(segment.data()));
  EXPECT_TRUE(IsAll(segment.data(), segment.size(), 1));
}

// Tests a kernel that does not copy an RDMA device's memory into the child.
// Another mapping of the child may have these addresses.
TEST(ShmFork, WhatTheChildDoesNotHaveStaysUnmapped) {
  Segment segment = Segment::Create("test", kMiB).value();
  PrivateInChild in_child(segment, /*has_reserved_pages=*/false);
  ASSERT_EQ(madvise(segment.data(), segment.size(), MADV_DONTFORK), 0);
  ForkedChild child(
      [&] { EXPECT_NE(msync(segment.data(), segment.size(), MS_ASYNC), 0); });
  EXPECT_TRUE(child.Join());
  segment.data()[0] = 1;
}

TEST(ShmFork, ChildWaitsForNoLockOfItsParents) {
  std::atomic<bool> ends{false};
  std::thread busy([&ends] {
    // Creates and deletes segments, which takes all locks of the arenas.
    while (!ends) {
      auto arena = Arena::Create(16 * kMiB);
      for (int i = 0; i < 20; ++i) (void)arena->Allocate(kMiB).value();
      (void)ArenaFor(geteuid()).value()->Allocate(kMiB).value();
    }
  });
  auto lease = LeaseOf(ArenaFor(geteuid()).value(), kMiB, 1);
  for (int i = 0; i < 100; ++i) {
    ForkedChild child([&] {
      alarm(20);
      lease.reset();
      EXPECT_TRUE(ArenaFor(geteuid()).value()->Allocate(kMiB).ok());
    });
    ASSERT_TRUE(child.Join()) << "fork " << i;
  }
  ends = true;
  busy.join();
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
