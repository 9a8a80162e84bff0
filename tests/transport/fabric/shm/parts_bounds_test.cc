// Tests the cost of lists of parts for the side that reads them. The lists have
// any numbers.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/fuzz/bounds.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/fabric/shm/segment.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

using fuzz::Cost;
using fuzz::Random;
using Kind = SetupMessage::Kind;

constexpr uint64_t kPartBytes = 24;  // the size of a part on the wire
constexpr uint64_t kSegmentBytes = 1 << 20;
constexpr uint64_t kBudget = 1 << 20;
// The bytes that a process may map in addition to the lent memory: the stacks
// of threads that start meanwhile, and the 64 MiB of addresses that glibc
// reserves for the heap of each thread.
constexpr uint64_t kMappedBudget = 512 << 20;
constexpr uint32_t kIds = 8;

uint64_t MappedBytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  statm >> pages;
  return pages * 4096;
}

// Returns the fabric of the attacked side.
ShmFabric* Attacked() {
  static auto* const fabric = new ShmFabric();
  return fabric;
}

// Creates the segment once, because a peer may lend the same memory repeatedly.
const Segment& SharedSegment() {
  static const auto& segment =
      *new Segment(Segment::Create("penstock-bounds", kSegmentBytes).value());
  return segment;
}

// The side that reads, and its peer, which attacks with lists of parts.
class Attack {
 public:
  explicit Attack(Random* random)
      : random_(random), pair_(MakeRawPair(Attacked())) {}

  // Returns the number of steps of the attack so far.
  int Run() {
    int steps = 0;
    const uint64_t mapped_before = MappedBytes();
    while (steps < 200 && random_->GoesOn() && pair_ != nullptr &&
           pair_->end.events.broken.empty() && !testing::Test::HasFailure()) {
      ++steps;
      const Cost cost;
      const size_t bytes = Take();
      EXPECT_TRUE(cost.IsWithin(bytes, kBudget));
      EXPECT_LE(MappedBytes(),
                mapped_before + lent_ * kSegmentBytes + kMappedBudget);
    }
    loaded_.clear();
    return steps;
  }

 private:
  // Makes one step. Returns the number of bytes that the peer has sent in the
  // step.
  size_t Take() {
    switch (random_->Below(8)) {
      case 0:
        return Lend();
      case 1:
        return SayAnything();
      case 2:
        pair_->end.endpoint->Poll();
        return 0;
      case 3:
        loaded_.clear();
        return 0;
      default:
        return Use(AnyRegion());
    }
  }

  size_t Lend() {
    SetupMessage message;
    message.kind = Kind::kSegment;
    message.segment_id = random_->Mostly<uint32_t>(next_id_++ % kIds);
    message.size = random_->Mostly<uint64_t>(kSegmentBytes);
    if (SendSetup(pair_->socket.get(), message, SharedSegment().fd()).ok()) {
      ++lent_;
    }
    return kSetupHeaderBytes;
  }

  size_t SayAnything() {
    SetupMessage message;
    message.kind =
        static_cast<Kind>(random_->Mostly<uint8_t>(3 + random_->Below(5)));
    message.segment_id =
        random_->OneIn(2) ? random_->Below(kIds) : random_->Number(32);
    message.size = random_->OneIn(4) ? random_->Number(64) : 0;
    if (message.kind == Kind::kDevice) message.handle = "handle";
    (void)SendSetup(pair_->socket.get(), message, -1);
    return kMaxSetupBytes;
  }

  // Returns a region that is correct, or wrong in one part.
  RemoteRegion AnyRegion() {
    RemoteRegion region(1 + random_->Number(9));
    for (RemotePart& part : region) part = HonestPart();
    if (random_->OneIn(2)) Spoil(&region[random_->Below(region.size())]);
    return region;
  }
  RemotePart HonestPart() {
    RemotePart part;
    part.key = RegionKey(next_id_ > 0 ? random_->Below(next_id_) % kIds : 0,
                         random_->Below(64));
    part.offset = random_->Below(kSegmentBytes);
    part.length = 1 + random_->Below(kSegmentBytes - part.offset);
    return part;
  }
  void Spoil(RemotePart* part) {
    switch (random_->Below(4)) {
      case 0:
        part->key = random_->Number(64);
        break;
      case 1:
        part->offset = random_->Number(64);
        break;
      case 2:
        part->length = random_->Number(64);
        break;
      default:  // the end of the part lies in the segment, since the sum wraps
        part->length = random_->Number(64);
        part->offset = random_->Below(kSegmentBytes) - part->length;
    }
  }

  size_t Use(const RemoteRegion& region) {
    Endpoint* const endpoint = pair_->end.endpoint.get();
    switch (random_->Below(3)) {
      case 0:
        Load(region);
        break;
      case 1:
        Read(region.front());
        break;
      default:
        endpoint->GiveBack(region);
    }
    return kPartBytes * region.size();
  }

  void Load(const RemoteRegion& region) {
    auto loaded = pair_->end.endpoint->Load(region);
    if (!loaded.ok()) return;
    uint64_t size = 0;
    for (const RemotePart& part : region) size += part.length;
    EXPECT_EQ(loaded->size(), size);
    // Reads the last byte of each piece, as an application may.
    for (const memory::Bytes& piece : loaded->pieces()) {
      EXPECT_EQ(piece.data[piece.size - 1], 0);
    }
    loaded_.push_back(*std::move(loaded));
    if (loaded_.size() > 4) loaded_.clear();
  }

  void Read(const RemotePart& part) {
    std::vector<uint8_t> into(1 + random_->Below(4096));
    auto* const events = &pair_->end.events;
    events->reads.clear();
    pair_->end.endpoint->Read(part, random_->Number(64), absl::MakeSpan(into),
                              1);
    EXPECT_EQ(events->reads.size(), 1u) << "a read ends once, at once";
  }

  Random* const random_;
  std::unique_ptr<RawPair> pair_;
  std::vector<memory::Payload> loaded_;
  uint32_t next_id_ = 0;
  uint64_t lent_ = 0;
};

TEST(ShmPartsBounds, EachListCostsInProportionToItsBytes) {
  // Creates the objects that a process creates only once. Otherwise their cost
  // would count for the first attack.
  { Attack(nullptr); }
  (void)SharedSegment();
  Random random;
  int runs = 0;
  int steps = 0;
  for (; random.GoesOn() && !HasFailure(); ++runs) {
    steps += Attack(&random).Run();
  }
  std::printf("%d connections, %d steps\n", runs, steps);
  EXPECT_GT(steps, runs);
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
