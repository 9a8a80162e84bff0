// Tests payloads of several pieces, some of which are in the arena: which
// pieces are lent in place, which are copied, and when the loan ends.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/shm/arena.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/endpoint.h"
#include "transport/fabric/shm/link.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/fabric/shm/segment.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint32_t kRingBytes = 128 * 1024;
constexpr size_t kMany = 100;

// One side of a connection, whose loans the test can count.
struct Side {
  std::shared_ptr<Arena> arena = Arena::Create(64 * kMiB);
  std::shared_ptr<Link> link;
  Recorder events;
  std::unique_ptr<ShmEndpoint> endpoint;
};

class ShmParts : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC,
                         0, ends),
              0);
    Segment first = CreateControl(kRingBytes).value();
    Segment second = CreateControl(kRingBytes).value();
    const int first_fd = dup(first.fd());
    const int second_fd = dup(second.fd());
    Connect(&lender_, ends[0], std::move(first), second_fd);
    Connect(&borrower_, ends[1], std::move(second), first_fd);
  }

  Endpoint* lender() { return lender_.endpoint.get(); }
  Endpoint* borrower() { return borrower_.endpoint.get(); }
  Arena* arena() { return lender_.arena.get(); }
  // Makes the lender look for returns, and returns the number of loans.
  size_t loans() {
    lender()->Poll();
    return lender_.link->lender()->count();
  }
  // Returns the number of loans that the borrower has returned.
  uint64_t returns() const { return borrower_.link->own_page()->release_head; }

  std::shared_ptr<ArenaLease> Lease(size_t size, uint8_t seed) {
    std::shared_ptr<ArenaLease> lease = arena()->Allocate(size).value();
    PatternPayload(size, seed).CopyTo(lease->data());
    return lease;
  }
  static memory::Bytes BytesOf(const std::shared_ptr<ArenaLease>& lease) {
    return {lease->data(), lease->size(), lease};
  }
  memory::Bytes InArena(size_t size, uint8_t seed) {
    return BytesOf(Lease(size, seed));
  }
  static memory::Bytes OnHeap(size_t size, uint8_t seed) {
    return PatternPayload(size, seed).pieces()[0];
  }
  // Appends pieces that become five parts; the first, the third and the last
  // are copies.
  memory::Payload FiveParts() {
    memory::Payload payload;
    for (const memory::Bytes& piece :
         {OnHeap(100, 1), InArena(8192, 2), OnHeap(5000, 3), InArena(4096, 4),
          OnHeap(50, 5)}) {
      payload.Append(piece);
    }
    return payload;
  }

  Exposure Expose(const memory::Payload& payload, size_t max_parts = kMany) {
    absl::StatusOr<Exposure> exposure = lender()->Expose(payload, max_parts);
    EXPECT_TRUE(exposure.ok()) << exposure.status();
    return exposure.ok() ? *std::move(exposure) : Exposure{{{}}, {}};
  }
  memory::Payload Load(const RemoteRegion& region) {
    absl::StatusOr<memory::Payload> loaded = borrower()->Load(region);
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *std::move(loaded) : memory::Payload();
  }

  Side lender_;
  Side borrower_;

 private:
  static void Connect(Side* side, int socket, Segment own, int peer_fd) {
    Sharing sharing;
    sharing.arena = side->arena;
    absl::StatusOr<PeerSegment> peer =
        MapControl(base::UniqueFd(peer_fd), kRingBytes);
    ASSERT_TRUE(peer.ok()) << peer.status();
    auto link = Link::Create(base::UniqueFd(socket), std::move(own),
                             *std::move(peer), std::move(sharing));
    ASSERT_TRUE(link.ok()) << link.status();
    side->link = *std::move(link);
    side->endpoint = std::make_unique<ShmEndpoint>(side->link);
    side->endpoint->Start(&side->events);
  }
};

// Expects that the region's part and the lender's part both lie in the lease:
// nothing was copied.
void ExpectInPlace(const Exposure& exposure, size_t part,
                   const ArenaLease& lease) {
  const RemotePart& remote = exposure.region[part];
  EXPECT_EQ(SegmentOfKey(remote.key), lease.place().segment_id);
  EXPECT_EQ(remote.offset, lease.place().offset);
  EXPECT_EQ(remote.length, lease.size());
  EXPECT_EQ(exposure.stable.pieces()[part].data, lease.data());
}

TEST_F(ShmParts, PiecesInTheArenaAreLentWhereTheyLie) {
  const auto first = Lease(8192, 2), second = Lease(4096, 3);
  const auto small = Lease(4095, 5), last = Lease(kMiB, 6);
  memory::Payload payload;
  for (const memory::Bytes& piece :
       {OnHeap(100, 1), BytesOf(first), BytesOf(second), OnHeap(5000, 4),
        BytesOf(small), BytesOf(last)}) {
    payload.Append(piece);
  }
  const uint64_t before = arena()->used();
  const Exposure exposure = Expose(payload);
  ASSERT_EQ(exposure.region.size(), 5u);
  ASSERT_EQ(exposure.stable.pieces().size(), 5u);
  ExpectInPlace(exposure, 1, *first);
  ExpectInPlace(exposure, 2, *second);
  ExpectInPlace(exposure, 4, *last);
  EXPECT_EQ(exposure.region[0].length, 100u);
  EXPECT_EQ(exposure.region[3].length, 5000u + 4095);
  // Expects two copies: one of the 100 bytes, rounded up to a multiple of 64,
  // and one of the rest.
  EXPECT_EQ(arena()->used() - before, 128u + 9152) << "one copy";

  const memory::Payload loaded = Load(exposure.region);
  ASSERT_EQ(loaded.pieces().size(), 5u);
  for (size_t i : {0, 1, 2, 4}) {
    const uint8_t seed = i == 4 ? 6 : i + 1;
    EXPECT_TRUE(HasPattern(loaded.pieces()[i].span(), seed)) << i;
  }
  const absl::Span<const uint8_t> copied = loaded.pieces()[3].span();
  EXPECT_TRUE(HasPattern(copied.first(5000), 4));
  EXPECT_TRUE(HasPattern(copied.subspan(5000), 5));
  // Changes the owner's memory, which the peer has mapped too.
  last->data()[7] = 99;
  EXPECT_EQ(loaded.pieces()[4].data[7], 99);
}

TEST_F(ShmParts, AllAreOfOneLoan) {
  EXPECT_EQ(loans(), 0u);
  const Exposure exposure = Expose(FiveParts());
  ASSERT_EQ(exposure.region.size(), 5u);
  EXPECT_EQ(loans(), 1u);
  for (const RemotePart& part : exposure.region) {
    EXPECT_EQ(LoanOfKey(part.key), LoanOfKey(exposure.region[0].key));
  }
  const Exposure next = Expose(FiveParts());
  EXPECT_EQ(loans(), 2u);
  EXPECT_NE(LoanOfKey(next.region[0].key), LoanOfKey(exposure.region[0].key));
}

TEST_F(ShmParts, LoanEndsOnceWithTheLastPieceInWhicheverOrder) {
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  do {
    const uint64_t before = returns();
    std::vector<memory::Bytes> pieces;
    {
      const Exposure exposure = Expose(FiveParts());
      const memory::Payload loaded = Load(exposure.region);
      pieces.assign(loaded.pieces().begin(), loaded.pieces().end());
      lender()->Withdraw(exposure.region);
    }
    ASSERT_EQ(pieces.size(), 5u);
    const uint64_t lent = arena()->used();
    for (size_t i : order) {
      EXPECT_EQ(loans(), 1u);
      EXPECT_EQ(arena()->used(), lent);
      EXPECT_TRUE(HasPattern(pieces[i].span(), i + 1));
      pieces[i] = memory::Bytes();
    }
    EXPECT_EQ(returns(), before + 1);
    EXPECT_EQ(loans(), 0u);
    ASSERT_EQ(arena()->used(), 0u);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_F(ShmParts, LendersOwnShareKeepsThePiecesToo) {
  const Exposure exposure = Expose(FiveParts());
  const uint64_t lent = arena()->used();
  (void)Load(exposure.region);
  EXPECT_EQ(loans(), 0u);
  EXPECT_EQ(arena()->used(), lent);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(HasPattern(exposure.stable.pieces()[i].span(), i + 1)) << i;
  }
}

TEST_F(ShmParts, PartsThatWereReadAreGivenBackTogether) {
  const RemoteRegion region = Expose(FiveParts()).region;
  ASSERT_EQ(region.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    std::vector<uint8_t> into(region[i].length);
    const size_t half = into.size() / 2;
    borrower()->Read(region[i], half, absl::MakeSpan(into).subspan(half), 2);
    borrower()->Read(region[i], 0, absl::MakeSpan(into).first(half), 1);
    for (uint64_t read : {1, 2}) {
      EXPECT_TRUE(borrower_.events.reads[read].ok());
    }
    EXPECT_TRUE(HasPattern(into, i + 1)) << i;
    EXPECT_EQ(loans(), 1u);
  }
  EXPECT_EQ(returns(), 0u);
  borrower()->GiveBack(region);
  EXPECT_EQ(returns(), 1u);
  EXPECT_EQ(loans(), 0u);
  EXPECT_EQ(arena()->used(), 0u);
}

TEST_F(ShmParts, PartsOfTwoLoansAreNotLoaded) {
  const RemoteRegion one = Expose(FiveParts()).region;
  const RemoteRegion other = Expose(FiveParts()).region;
  RemoteRegion mixed = one;
  mixed[3] = other[3];
  const absl::Status refused = borrower()->Load(mixed).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  EXPECT_EQ(loans(), 2u);
  (void)Load(one);
  EXPECT_EQ(loans(), 1u);
  (void)Load(other);
  EXPECT_EQ(loans(), 0u);
}

TEST_F(ShmParts, RegionWithAPartThatIsNotThereIsNotLoaded) {
  const RemoteRegion region = Expose(FiveParts()).region;
  for (size_t i = 0; i < 5; ++i) {
    RemoteRegion bad = region;
    bad[i].length = 64 * kMiB;
    EXPECT_FALSE(borrower()->Load(bad).ok()) << i;
  }
  EXPECT_EQ(returns(), 0u);
  EXPECT_EQ(loans(), 1u);
  (void)Load(region);
  EXPECT_EQ(loans(), 0u);
}

TEST_F(ShmParts, MayBeOfSeveralSegments) {
  const auto first = Lease(12 * kMiB, 1), second = Lease(12 * kMiB, 2);
  ASSERT_NE(first->place().segment_id, second->place().segment_id);
  memory::Payload payload;
  for (const auto& lease : {first, second, first, second}) {
    payload.Append(BytesOf(lease).Part(0, 8192));
  }
  const Exposure exposure = Expose(payload);
  const memory::Payload loaded = Load(exposure.region);
  ASSERT_EQ(loaded.pieces().size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(HasPattern(loaded.pieces()[i].span(), 1 + i % 2)) << i;
  }
  EXPECT_EQ(loans(), 1u);
}

TEST_F(ShmParts, WithoutRoomForACopyNothingIsLent) {
  const auto all = Lease(60 * kMiB, 1);
  memory::Payload in_place;
  in_place.Append(BytesOf(all).Part(0, 8192));
  in_place.Append(BytesOf(all).Part(10000, 8192));
  memory::Payload mixed = in_place;
  mixed.Append(OnHeap(8 * kMiB, 2));
  const absl::Status refused = lender()->Expose(mixed, kMany).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(loans(), 0u);
  EXPECT_EQ(arena()->used(), 60 * kMiB);
  // Expects that pieces in the arena need no further memory.
  const Exposure exposure = Expose(in_place);
  EXPECT_EQ(exposure.region.size(), 2u);
  EXPECT_EQ(arena()->used(), 60 * kMiB);
}

TEST_F(ShmParts, FewPartsAreTheLargestPieces) {
  const auto small = Lease(8192, 1), large = Lease(kMiB, 3);
  memory::Payload payload;
  for (const memory::Bytes& piece :
       {BytesOf(small), OnHeap(10, 2), BytesOf(large)}) {
    payload.Append(piece);
  }
  const Exposure two = Expose(payload, 2);
  ASSERT_EQ(two.region.size(), 2u);
  EXPECT_EQ(two.region[0].length, 8202u);
  ExpectInPlace(two, 1, *large);
  EXPECT_EQ(Expose(payload, 1).region.size(), 1u);
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
