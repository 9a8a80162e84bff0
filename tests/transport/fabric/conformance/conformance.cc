#include "tests/transport/fabric/conformance/conformance.h"

#include <algorithm>
#include <vector>

#include "absl/memory/memory.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

// The first cookie of ReadWhole(). Tests give their own reads smaller numbers.
constexpr uint64_t kFirstCookie = uint64_t{1} << 48;
// The number of packets of a long test. More than the credits of any fabric.
constexpr int kManyPackets = 100 * 1000;
constexpr char kIsDestroyed[] = "after its endpoint was destroyed";

uint64_t SizeOf(const RemoteRegion& region) {
  uint64_t size = 0;
  for (const RemotePart& part : region) size += part.length;
  return size;
}

}  // namespace

void Conformance::Disconnect() {
  if (harness_ == nullptr) return;
  for (Side side : kSides) Kill(side);
  harness_ = nullptr;
}

void Conformance::Connect() {
  Disconnect();
  harness_ = GetParam().make();
  ASSERT_NE(harness_, nullptr);
  for (Side side : kSides) {
    auto& recorder = recorders_[static_cast<int>(side)];
    recorder = absl::make_unique<Recorder>();
    end(side)->Start(recorder.get());
  }
  capabilities_ = a()->capabilities();
}

size_t Conformance::several_chunks() const {
  // Three and a third chunks. Small enough to be read often.
  const size_t chunk = capabilities().read_chunk_bytes;
  return std::max<size_t>(3 * chunk + chunk / 3, 1000);
}

bool Conformance::Send(Side from, absl::string_view packet) {
  ForbidEvents("from within Send()");
  const bool sent = end(from)->Send(AsSpan(packet));
  AllowEvents();
  return sent;
}

void Conformance::ForbidEvents(const char* why) {
  for (Side side : kSides) at(side).forbidden = why;
}

void Conformance::AllowEvents() {
  for (Side side : kSides) {
    at(side).forbidden = end(side) == nullptr ? kIsDestroyed : nullptr;
  }
}

void Conformance::SendSurely(Side from, absl::string_view packet) {
  if (Send(from, packet)) return;
  const int before = at(from).writable;
  Pump();
  ASSERT_GT(at(from).writable, before) << "refused, but never writable again";
  ASSERT_TRUE(Send(from, packet)) << "refused, though all has been taken";
}

int Conformance::SendUntilRefused(Side from) {
  const std::string packet(max_packet(), 'm');
  int taken = 0;
  while (taken < kManyPackets && Send(from, packet)) ++taken;
  EXPECT_LT(taken, kManyPackets) << "nothing limits what is under way";
  return taken;
}

void Conformance::Read(Side reader, const RemotePart& part, uint64_t offset,
                       absl::Span<uint8_t> into, uint64_t cookie) {
  Recorder& recorder = at(reader);
  recorder.under_way.insert(cookie);
  const bool nested = recorder.within_read;
  recorder.within_read = true;
  end(reader)->Read(part, offset, into, cookie);
  recorder.within_read = nested;
}

Exposure Conformance::Expose(Side owner, const memory::Payload& payload,
                             size_t max_parts) {
  absl::StatusOr<Exposure> exposure = end(owner)->Expose(payload, max_parts);
  EXPECT_TRUE(exposure.ok()) << exposure.status();
  // Returns a region with one empty part, so that the failed test can continue.
  if (!exposure.ok()) return Exposure{RemoteRegion(1), memory::Payload()};
  EXPECT_LE(exposure->region.size(), max_parts);
  for (const RemotePart& part : exposure->region) EXPECT_GT(part.length, 0u);
  EXPECT_EQ(SizeOf(exposure->region), payload.size());
  EXPECT_EQ(exposure->stable.size(), payload.size());
  return *std::move(exposure);
}

RemotePart Conformance::ExposePart(absl::string_view bytes) {
  return Expose(Side::kA, PayloadOf(bytes)).region[0];
}

void Conformance::ReadChunks(Side reader, const RemoteRegion& region,
                             Target* target) {
  const size_t chunk = capabilities().read_chunk_bytes;
  const size_t max_reads = capabilities().max_reads;
  uint64_t cookie = kFirstCookie;
  absl::Span<uint8_t> rest = target->span();
  for (const RemotePart& part : region) {
    for (uint64_t at = 0; at < part.length; at += chunk) {
      for (int i = 0; i < 100 && this->at(reader).under_way.size() >= max_reads;
           ++i) {
        Pump();
      }
      const size_t size = std::min<uint64_t>(chunk, part.length - at);
      Read(reader, part, at, rest.first(size), cookie++);
      rest.remove_prefix(size);
    }
  }
  // Pumps repeatedly, because on a busy machine a device may be silent for
  // longer than Pump() waits.
  for (int i = 0; i < 100 && !this->at(reader).under_way.empty(); ++i) Pump();
}

absl::StatusOr<std::string> Conformance::ReadWhole(Side reader,
                                                   const RemoteRegion& region) {
  Target target(SizeOf(region));
  Recorder& recorder = at(reader);
  recorder.reads.clear();
  ReadChunks(reader, region, &target);
  EXPECT_TRUE(recorder.under_way.empty()) << "a read has not ended";
  EXPECT_TRUE(target.margins_are_untouched());
  for (const auto& read : recorder.reads) {
    if (!read.second.ok()) return read.second;
  }
  return target.text();
}

void Conformance::Release(Side owner, const RemoteRegion& region) {
  end(Other(owner))->GiveBack(region);
  end(owner)->Withdraw(region);
}

void Conformance::ExpectAlive() {
  for (Side side : kSides) {
    Recorder& receiver = at(Other(side));
    receiver.packets.clear();
    ASSERT_NO_FATAL_FAILURE(SendSurely(side, "still here"));
    Pump();
    EXPECT_EQ(receiver.packets, std::vector<std::string>{"still here"});
    const std::string bytes = RandomBytes(1000, 99);
    const Exposure exposure = Expose(side, PayloadOf(bytes));
    const auto read = ReadWhole(Other(side), exposure.region);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == bytes);
    Release(side, exposure.region);
    EXPECT_TRUE(receiver.broken.empty());
  }
}

void Conformance::Kill(Side side) {
  at(side).forbidden = kIsDestroyed;
  harness_->Kill(side);
  at(side).under_way.clear();
}

INSTANTIATE_TEST_SUITE_P(Fabric, Conformance, ::testing::ValuesIn(Fabrics()),
                         NameOf);

}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
