// Tests a movable stream: everything that it reads from a path and from TCP.
//
// The first byte of the input chooses the peer, and the second byte the path.
// The rest is a list of steps. An honest peer is another stream, and no byte
// may be lost or changed. A liar sends anything on the path and on TCP. Either
// peer may be on another host.

#include <algorithm>
#include <memory>
#include <utility>

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "tests/transport/event_engine/stream/ends.h"
#include "transport/event_engine/stream/packet.h"

namespace penstock {
namespace fuzz {
namespace {

using event_engine::LinkOptions;
using event_engine::Packet;
using event_engine::Pair;

enum Peer : uint8_t { kHonest, kLiar, kHonestHost, kLiarHost, kPeers };

// The liar's steps, and the victim's.
enum Step : uint8_t {
  kPacket,   // u8 kind, i8 from the right offset, i8 acknowledged, u16 length
  kRegion,   // the same; exposes the bytes, or names an unknown region
  kRaw,      // u8 length, bytes of a packet
  kTcp,      // u8 length, bytes
  kTcpMany,  // u16 length
  kMark,     // i8 added to the right offset
  kNewPath,
  kClosePath,
  kSend,  // u16 length
  kPoll,
  kTake,
  kSteps
};

LinkOptions OptionsOf(uint8_t choice, bool on_other_host) {
  LinkOptions options;
  options.can_load = choice % 2 == 1 && !on_other_host;
  options.credits = 1 + choice / 2 % 8;
  options.eager_max_bytes = size_t{1} << (choice / 16);
  return options;
}

void RunHonest(Input* input, bool on_other_host) {
  Pair pair(OptionsOf(input->Number<uint8_t>(), on_other_host));
  for (event_engine::End& end : pair.ends) {
    if (on_other_host) end.FollowRecords();
  }
  while (!input->empty()) {
    pair.Step([&](uint32_t limit) { return input->Number<uint8_t>() % limit; });
    Require(pair.status().ok(), "honest peers agree");
  }
  Require(pair.Ends(), "no byte is lost");
  Require(pair.status().ok(), "honest peers agree at the end");
}

// Limits the bytes of the path that a victim keeps: bytes that TCP has not
// reached yet, bytes that the program has not taken, and packets in the link.
constexpr uint64_t kMostKept = 2 * event_engine::kWindowBytes + 1024 * 1024;

// A liar, and the victim's program. The program takes bytes when a step tells
// it to.
class Liar {
 public:
  Liar(Input* input, bool on_other_host)
      : input_(input),
        pair_(OptionsOf(input->Number<uint8_t>(), on_other_host)) {
    if (on_other_host) pair_.ends[0].FollowRecords();
    NewPath();
  }

  void Run() {
    while (!input_->empty() && victim().error().ok()) {
      Take(static_cast<Step>(input_->Number<uint8_t>() % kSteps));
      if (victim().has_lost_path()) (void)victim().LeavePath();
      Require(
          !victim().error().ok() || accepted_ <= taken_ + on_tcp_ + kMostKept,
          "the victim keeps little");
    }
    const bool had = victim().has_due();
    // Ends the stream, as a connection with an error does.
    (void)victim().Poll();
    Require(victim().error().ok() || had == victim().has_due(),
            "after an error nothing more is received");
    victim().LosePath(absl::UnavailableError("closed"));
    if (victim().has_lost_path()) (void)victim().LeavePath();
    TakeDue();
    Require(taken_ <= on_tcp_ + sent_, "only sent bytes are received");
  }

 private:
  event_engine::MovableStream& victim() { return pair_.ends[0].stream; }

  void Take(Step step) {
    switch (step) {
      case kPacket:
        return SendPacket(/*region=*/false);
      case kRegion:
        return SendPacket(/*region=*/true);
      case kRaw:
        (void)SendRaw(AsText(input_->Bytes(input_->Number<uint8_t>())));
        return;
      case kTcp:
        return SendTcp(
            std::string(AsText(input_->Bytes(input_->Number<uint8_t>()))));
      case kTcpMany:
        return SendTcp(std::string(input_->Number<uint16_t>(), 'x'));
      case kMark:
        return SendTcp(event_engine::EncodeMark(Near(at_)));
      case kNewPath:
        return NewPath();
      case kClosePath:
        path_.reset();
        return;
      case kSend:
        return Send(input_->Number<uint16_t>());
      case kPoll:
        (void)victim().Poll();
        return;
      case kTake:
      case kSteps:
        return TakeDue();
    }
  }

  // Returns a number that is usually `right` or close to it, and otherwise
  // random.
  uint64_t Near(uint64_t right) {
    constexpr int8_t kAny = -128;
    const auto distance = input_->Number<int8_t>();
    if (distance == kAny) return input_->AnyNumber();
    return right + static_cast<uint64_t>(static_cast<int64_t>(distance));
  }

  void SendPacket(bool region) {
    Packet packet;
    packet.kind = static_cast<Packet::Kind>(1 + input_->Number<uint8_t>() % 4);
    packet.offset = Near(at_);
    packet.acknowledged = Near(0);
    const std::string bytes(input_->Number<uint16_t>(), 'x');
    if (path_ == nullptr) return;
    if (region) {
      packet.kind = Packet::Kind::kRegion;
      packet.region = RegionOf(bytes);
    }
    const bool has_bytes = packet.kind == Packet::Kind::kBytes;
    const bool sent =
        SendRaw(event_engine::EncodeHead(packet) + (has_bytes ? bytes : ""));
    sent_ += bytes.size();
    if (!region && !has_bytes) return;
    at_ += bytes.size();
    if (sent) accepted_ += bytes.size();
  }

  // Exposes `bytes`. If `bytes` is empty, returns a region that does not exist.
  fabric::RemoteRegion RegionOf(const std::string& bytes) {
    auto exposure = path_->Expose(memory::Payload(event_engine::BytesOf(bytes)),
                                  event_engine::kMaxParts);
    if (!exposure.ok() || bytes.empty()) return {{77, 0, 8}};
    return exposure->region;
  }

  // Returns true if a path has taken the packet and the victim has kept the
  // path.
  bool SendRaw(absl::string_view bytes) {
    sent_ += bytes.size();
    const bool sent = path_ != nullptr && path_->Send(AsBytes(bytes));
    (void)victim().Poll();
    return sent && victim().path() != nullptr && !victim().has_lost_path();
  }

  // Sends as a connection does. Polls first. Reads TCP only if the program has
  // taken all bytes.
  void SendTcp(const std::string& bytes) {
    while (victim().Poll()) continue;
    if (victim().has_lost_path()) (void)victim().LeavePath();
    TakeDue();
    if (!victim().error().ok()) return;
    on_tcp_ += bytes.size();
    if (victim().path() == nullptr) at_ += bytes.size();
    if (victim().IsPlain(bytes.size())) {
      victim().CountReceived(bytes.size());
      taken_ += bytes.size();
      return;
    }
    victim().OnTcp(event_engine::BytesOf(bytes));
  }

  void NewPath() {
    if (path_ != nullptr || victim().path() != nullptr) return;
    pair_.NewLink();
    path_ = std::move(pair_.waiting[1]);
    victim().MoveTo(std::move(pair_.waiting[0]));
  }

  void Send(size_t size) {
    const std::string bytes(size, 'v');
    if (victim().on_path()) {
      victim().Write(memory::Payload(event_engine::BytesOf(bytes)));
    } else {
      victim().CountWritten(size);
    }
    (void)victim().TakeReleased();
  }

  void TakeDue() {
    if (victim().has_due()) taken_ += victim().Take().size();
  }

  Input* const input_;
  Pair pair_;
  std::unique_ptr<fabric::Endpoint> path_;  // the liar's end of the link
  uint64_t at_ = 0;        // the offset from which an honest peer continues
  uint64_t sent_ = 0;      // on paths: bytes that belong to the stream
  uint64_t accepted_ = 0;  // the part of these that may be kept
  uint64_t on_tcp_ = 0;
  uint64_t taken_ = 0;
};

std::string PacketStep(Packet::Kind kind, uint16_t length) {
  return Number<uint8_t>(kPacket) +
         Number<uint8_t>(static_cast<uint8_t>(kind) - 1) + Number<uint8_t>(0) +
         Number<uint8_t>(0) + Number(length);
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string honest = Number<uint8_t>(kHonest);
  const std::string honest_host = Number<uint8_t>(kHonestHost);
  const std::string liar = Number<uint8_t>(kLiar) + Number<uint8_t>(0xa7);
  const std::string liar_host =
      Number<uint8_t>(kLiarHost) + Number<uint8_t>(0xa7);
  const std::string greets = PacketStep(Packet::Kind::kAck, 0);
  const std::string begins = PacketStep(Packet::Kind::kBegin, 0);
  const std::string sends = PacketStep(Packet::Kind::kBytes, 500);
  const std::string tcp = Number<uint8_t>(kTcpMany) + Number<uint16_t>(300);
  const std::string marks = Number<uint8_t>(kMark) + Number<uint8_t>(0);
  const std::string writes = Number<uint8_t>(kSend) + Number<uint16_t>(5000);
  const std::string region = Number<uint8_t>(kRegion) + Number<uint8_t>(2) +
                             Number<uint16_t>(0) + Number<uint16_t>(4000);
  const std::string again = Number<uint8_t>(kClosePath) +
                            Number<uint8_t>(kPoll) + tcp +
                            Number<uint8_t>(kNewPath);
  std::string any;
  for (int i = 0; i < 150; ++i) {
    any += Number(static_cast<uint16_t>(i * 7919));
  }
  return {
      honest + any,
      honest + any.substr(100) + any.substr(0, 100),
      honest_host + any,
      liar_host + marks + tcp,
      liar_host + greets + begins + sends + marks + sends + tcp,
      liar + greets + begins + sends + sends + region + marks + tcp,
      liar + greets + writes + tcp + begins + sends + writes + again + greets,
      liar + begins + sends + Number<uint8_t>(kClosePath) +
          Number<uint8_t>(kPoll) + marks + tcp + again + greets + sends,
      liar + Number<uint8_t>(kRaw) + Number<uint8_t>(24) + std::string(24, 1),
  };
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock::fuzz;
  Input input(data, size);
  const auto peer = static_cast<Peer>(input.Number<uint8_t>() % kPeers);
  const bool on_other_host = peer == kHonestHost || peer == kLiarHost;
  if (peer == kHonest || peer == kHonestHost) {
    RunHonest(&input, on_other_host);
  } else {
    Liar(&input, on_other_host).Run();
  }
  return 0;
}
