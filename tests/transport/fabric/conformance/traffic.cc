// Tests all operations at the same time, for a while.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/conformance.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

constexpr size_t kMaxRegion = 400 * 1000;
constexpr size_t kRegionBytes = 8 * kMaxRegion;
// The bytes that each end sends in packets of any size before the test ends, as
// a number of full packets.
constexpr size_t kFullPackets = 80;
constexpr int kMaxRounds = 1000 * 1000;

// A test in which both ends send, expose, read and load in an order that a seed
// decides. Each received byte is compared with the sent byte. The test passes
// regions directly to the reader, where a session would announce them.
class ConformanceTraffic : public Conformance {
 protected:
  struct Pull {
    explicit Pull(Exposure exposed, absl::string_view bytes)
        : exposure(std::move(exposed)), bytes(bytes), target(bytes.size()) {}
    const Exposure exposure;
    const absl::string_view bytes;
    Target target;
    size_t next = 0;
    size_t done = 0;
  };
  struct Direction {
    // The packets that were sent and have not yet arrived.
    std::deque<absl::string_view> packets;
    std::map<uint64_t, Pull> pulls;  // reads in progress, by the region's key
    // The reads by cookie.
    std::map<uint64_t, std::pair<uint64_t, size_t>> reads;
    size_t packet_bytes = 0;
    size_t region_bytes = 0;
  };

  void SetUp() override {
    Conformance::SetUp();
    ASSERT_FALSE(HasFatalFailure());
    pool_ = RandomBytes(4 * kMaxRegion, 1);
    for (Side side : kSides) {
      at(side).on_packet = [this, side](absl::Span<const uint8_t> packet) {
        CheckPacket(From(Other(side)), packet);
      };
      at(side).on_read_done = [this, side](uint64_t cookie) {
        OnReadDone(side, cookie);
      };
    }
  }

  Direction& From(Side side) { return directions_[static_cast<int>(side)]; }
  size_t Below(size_t limit) { return random_() % limit; }
  absl::string_view RandomPart(size_t max) {
    const size_t size = RandomSize(&random_, max);
    return absl::string_view(pool_).substr(Below(pool_.size() - size), size);
  }

  bool HasMovedEnough() {
    for (Side side : kSides) {
      if (From(side).packet_bytes < kFullPackets * max_packet() ||
          From(side).region_bytes < kRegionBytes) {
        return false;
      }
    }
    return true;
  }

  void CheckPacket(Direction& from, absl::Span<const uint8_t> packet) {
    ASSERT_FALSE(from.packets.empty()) << "a packet that was not sent";
    ASSERT_TRUE(packet == AsSpan(from.packets.front()));
    from.packets.pop_front();
    from.packet_bytes += packet.size();
    // Drops the packets that the recorders keep, which the test does not need.
    for (Side side : kSides) at(side).packets.clear();
  }

  void SendSome(Side side) {
    for (size_t left = Below(6); left > 0; --left) {
      const absl::string_view packet = RandomPart(max_packet());
      From(side).packets.push_back(packet);
      if (Send(side, packet)) continue;
      From(side).packets.pop_back();
      return;
    }
  }

  void ExposeOne(Side side) {
    if (From(side).pulls.size() > 5) return;
    const absl::string_view bytes = RandomPart(kMaxRegion - 1);
    if (bytes.empty()) return;
    const Exposure exposure = Expose(
        side, PayloadOf(bytes, {Below(100), Below(bytes.size()), Below(5000)}));
    if (capabilities().can_load && Below(2) == 0) {
      LoadOne(side, exposure, bytes);
      return;
    }
    From(side).pulls.emplace(exposure.region[0].key, Pull(exposure, bytes));
  }

  void LoadOne(Side owner, const Exposure& exposure, absl::string_view bytes) {
    const auto loaded = end(Other(owner))->Load(exposure.region);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    end(owner)->Withdraw(exposure.region);
    EXPECT_TRUE(TextOf(*loaded) == bytes);
    From(owner).region_bytes += bytes.size();
  }

  // Starts reads of every region of `owner` that the other end has not read.
  void ReadSome(Side owner) {
    Recorder& reader = at(Other(owner));
    const size_t max_reads = capabilities().max_reads;
    std::vector<uint64_t> keys;
    for (const auto& pull : From(owner).pulls) keys.push_back(pull.first);
    for (uint64_t key : keys) {
      while (reader.under_way.size() < max_reads && ReadNext(owner, key)) {
      }
    }
  }

  // Reads the next piece of a region. Returns false if the whole region has
  // been requested.
  bool ReadNext(Side owner, uint64_t key) {
    auto it = From(owner).pulls.find(key);
    if (it == From(owner).pulls.end()) return false;
    Pull& pull = it->second;
    const size_t size = std::min(capabilities().read_chunk_bytes,
                                 pull.bytes.size() - pull.next);
    if (size == 0) return false;
    const size_t at = pull.next;
    pull.next += size;
    const uint64_t cookie = next_cookie_++;
    From(owner).reads[cookie] = {key, size};
    Read(Other(owner), pull.exposure.region[0], at,
         pull.target.span().subspan(at, size), cookie);
    return true;
  }

  void OnReadDone(Side reader, uint64_t cookie) {
    ASSERT_TRUE(at(reader).Succeeded(cookie)) << at(reader).reads[cookie];
    Direction& from = From(Other(reader));
    const std::pair<uint64_t, size_t> read = from.reads[cookie];
    from.reads.erase(cookie);
    Pull& pull = from.pulls.find(read.first)->second;
    pull.done += read.second;
    if (pull.done < pull.bytes.size()) return;
    EXPECT_TRUE(pull.target.text() == pull.bytes);
    EXPECT_TRUE(pull.target.margins_are_untouched());
    from.region_bytes += pull.bytes.size();
    Release(Other(reader), pull.exposure.region);
    from.pulls.erase(read.first);
  }

  std::mt19937_64 random_{42};
  std::string pool_;
  Direction directions_[2];
  uint64_t next_cookie_ = 0;
};

TEST_P(ConformanceTraffic, BothWaysArrivesByteForByte) {
  for (int i = 0; !HasMovedEnough(); ++i) {
    ASSERT_LT(i, kMaxRounds) << "nothing moves";
    const Side side = Below(2) == 0 ? Side::kA : Side::kB;
    SendSome(side);
    if (Below(4) == 0) ExposeOne(side);
    ReadSome(side);
    for (size_t steps = Below(4); steps > 0; --steps) harness_->Step();
    ASSERT_FALSE(HasFailure()) << "in round " << i;
  }
  for (Side side : kSides) {
    while (!From(side).pulls.empty()) {
      ReadSome(side);
      Pump();
    }
  }
  Pump();
  for (Side side : kSides) {
    EXPECT_TRUE(From(side).packets.empty()) << From(side).packets.size();
    EXPECT_TRUE(at(side).broken.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Fabric, ConformanceTraffic,
                         ::testing::ValuesIn(Fabrics()), NameOf);

}  // namespace
}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
