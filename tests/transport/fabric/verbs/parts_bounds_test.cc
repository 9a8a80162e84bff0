// Tests the cost of lists of parts for the reader, over simulated devices. The
// lists have any numbers.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/fuzz/bounds.h"
#include "tests/transport/fabric/verbs/ends.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

using fuzz::Cost;
using fuzz::Random;

constexpr uint64_t kPartBytes = 24;  // the size of a part on the wire
constexpr size_t kExposed = 100 * 1000;
// Limits the memory that the reader may hold, in bytes. The simulated devices
// hold a second copy of it.
constexpr uint64_t kBudget = 1 << 20;
constexpr size_t kReadBytes = 4096;

// A reader, and a peer that has exposed some bytes and announces any parts.
class Attack {
 public:
  explicit Attack(Random* random) : random_(random) {
    ends_.Forgive();
    EXPECT_TRUE(ends_.Connect().ok());
    const std::string text(kExposed, 'e');
    auto exposed = ends_.server->Expose(Ends::PayloadOf(text), 8);
    EXPECT_TRUE(exposed.ok()) << exposed.status();
    if (exposed.ok()) exposed_ = *std::move(exposed);
  }

  // Returns the number of lists that were read before the connection broke.
  int Run() {
    int lists = 0;
    while (random_->GoesOn() && ends_.client.events.broken.empty() &&
           ends_.server.events.broken.empty() && lists < 100 &&
           !testing::Test::HasFailure()) {
      ++lists;
      const RemoteRegion region = AnyRegion();
      const Cost cost;
      Use(region);
      ends_.Exchange();
      EXPECT_TRUE(cost.IsWithin(kPartBytes * region.size(), kBudget));
    }
    EXPECT_EQ(reads_, ends_.client.events.reads.size())
        << "each read ends once";
    return lists;
  }

 private:
  // Returns a region that is mostly honest, or wrong in one part. Reading a
  // wrong part breaks the connection, as with hardware.
  RemoteRegion AnyRegion() {
    RemoteRegion region(1 + random_->Number(9));
    for (RemotePart& part : region) {
      part = exposed_.region.empty() ? RemotePart() : exposed_.region.front();
      part.length = 1 + random_->Below(kExposed);
    }
    if (random_->OneIn(8)) Spoil(&region[random_->Below(region.size())]);
    return region;
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
      // Makes the sum wrap around, so that the part seems to end within the
      // exposed bytes.
      default:
        part->length = random_->Number(64);
        part->offset += random_->Below(kExposed) - part->length;
    }
  }

  // Returns true if the address wraps, or the key has more than 32 bits.
  static bool IsImpossible(const RemotePart& part, uint64_t offset) {
    return part.key > UINT32_MAX || offset > UINT64_MAX - part.offset;
  }

  // Behaves like a session: reads pieces of the listed parts, and returns the
  // list.
  void Use(const RemoteRegion& region) {
    for (const RemotePart& part : region) {
      if (random_->OneIn(2) || part.length == 0) continue;
      const uint64_t offset = random_->Number(64) % part.length;
      const size_t size = std::min<uint64_t>(kReadBytes, part.length - offset);
      buffers_.emplace_back(size);
      ends_.client.events.within_read = true;
      ends_.client->Read(part, offset, absl::MakeSpan(buffers_.back()),
                         ++reads_);
      ends_.client.events.within_read = false;
      if (IsImpossible(part, offset)) {
        EXPECT_EQ(ends_.client.events.reads[reads_].code(),
                  absl::StatusCode::kOutOfRange);
      }
    }
    ends_.client->GiveBack(region);
    ends_.Exchange();
    buffers_.clear();
  }

  Random* const random_;
  Ends ends_;
  Exposure exposed_;
  std::vector<std::vector<uint8_t>> buffers_;
  uint64_t reads_ = 0;
};

TEST(VerbsPartsBounds, EachListCostsInProportionToItsBytes) {
  Random random;
  int runs = 0;
  int lists = 0;
  for (; random.GoesOn() && !HasFailure(); ++runs) {
    lists += Attack(&random).Run();
  }
  std::printf("%d connections, %d lists\n", runs, lists);
  EXPECT_GT(lists, runs);
}

// Tests reads with one wrong number each. The device must never see the
// request.
TEST(VerbsPartsBounds, ReadBeyondAPartIsRefused) {
  constexpr size_t kBytes = 100;
  constexpr uint64_t kLength = 1000;
  constexpr uint64_t kEnd = UINT64_MAX;
  const struct {
    RemotePart part;  // key, address, length
    uint64_t offset;
  } cases[] = {{{1, 0, kBytes - 1}, 0},
               {{1, 0, kLength}, kLength - kBytes + 1},
               {{1, 0, kLength}, kEnd},
               {{1, kEnd - 10, kLength}, 11},
               {{uint64_t{UINT32_MAX} + 1, 0, kLength}, 0}};
  Ends ends;
  ASSERT_TRUE(ends.Connect().ok());
  std::vector<uint8_t> buffer(kBytes);
  uint64_t reads = 0;
  for (const auto& each : cases) {
    SCOPED_TRACE(reads);
    ends.client.events.within_read = true;
    ends.client->Read(each.part, each.offset, absl::MakeSpan(buffer), ++reads);
    ends.client.events.within_read = false;
    ASSERT_EQ(ends.client.events.reads.count(reads), 1u);
    EXPECT_EQ(ends.client.events.reads[reads].code(),
              absl::StatusCode::kOutOfRange);
  }
  ends.Exchange();
  EXPECT_TRUE(ends.client.events.broken.empty());
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
