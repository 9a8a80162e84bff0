#include "tests/fuzz/hostile_peer.h"

#include <algorithm>
#include <utility>

#include "transport/wire/announce.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace fuzz {
namespace {

using wire::FrameType;

// Maps any byte to a type, usually a known one.
FrameType TypeOf(uint8_t byte) {
  if (byte <= 27 || byte >= 250) return static_cast<FrameType>(byte);
  return static_cast<FrameType>(16 + byte % 11);
}

// Returns a payload in pieces of similar sizes.
memory::Payload InPieces(size_t size, size_t pieces) {
  const auto text = std::make_shared<std::string>(size, 'a');
  memory::Payload payload;
  for (size_t i = 0; i < pieces; ++i) {
    const size_t begin = size * i / pieces;
    const size_t end = size * (i + 1) / pieces;
    payload.Append({AsBytes(*text).data() + begin, end - begin, text});
  }
  return payload;
}

}  // namespace

HostilePeer::HostilePeer(std::unique_ptr<fabric::Endpoint> lifeline)
    : lifeline_(std::move(lifeline)) {
  lifeline_->Start(this);
}

void HostilePeer::AddFast(std::unique_ptr<fabric::Endpoint> fast) {
  fast_ = std::move(fast);
  fast_->Start(this);
}

void HostilePeer::OnPacket(absl::Span<const uint8_t> packet) {
  received_bytes_ += packet.size();
  while (!packet.empty()) {
    Require(wire::TakeFrame(&packet).ok(), "a session sends whole frames");
  }
}

void HostilePeer::SendHello(bool as_server) {
  wire::Hello hello;
  if (as_server) hello.token = "0123456789abcdef";
  hello.stream_window = 4096;
  hello.max_streams = 3;
  hello.offers = {{"shm", true, "here"}};
  wire::FrameHeader header;
  header.type = FrameType::kHello;
  Send(0, header, wire::EncodeHello(hello));
}

void HostilePeer::SendPathReady() {
  wire::FrameHeader header;
  header.type = FrameType::kPathReady;
  header.aux = 1;
  Send(0, header, "shm");
}

void HostilePeer::Send(int path, wire::FrameHeader header,
                       absl::string_view payload) {
  header.length = static_cast<uint32_t>(payload.size());
  if (wire::IsSequenced(header.type) && header.sequence == 0) {
    header.sequence = next_sequence_++;
  }
  std::string bytes;
  wire::AppendFrame(header, payload, &bytes);
  sent_bytes_ += bytes.size();
  (void)endpoint(path)->Send(AsBytes(bytes));
}

void HostilePeer::Take(Step step, Input* input) {
  switch (step) {
    case kFrame:
    case kOddFrame:
      return SendFrame(step == kOddFrame, input);
    case kBytes: {
      const int path = input->Number<uint8_t>();
      (void)endpoint(path)->Send(input->Bytes(input->Number<uint8_t>()));
      return;
    }
    case kLong:
      return SendLong(input);
    case kAnnounced:
      return SendAnnounced(input);
    default:
      return SendHello(input->Number<uint8_t>() % 2);
  }
}

void HostilePeer::SendFrame(bool odd, Input* input) {
  const int path = input->Number<uint8_t>();
  wire::FrameHeader header;
  header.type = TypeOf(input->Number<uint8_t>());
  header.flags = input->Number<uint8_t>();
  header.stream = input->Number<uint8_t>();
  header.aux = input->Number<uint16_t>();
  const absl::Span<const uint8_t> payload =
      input->Bytes(input->Number<uint8_t>());
  if (odd) {
    header.sequence = next_sequence_ + input->Number<int8_t>();
    header.ack = input->Number<uint8_t>();
  }
  Send(path, header, AsText(payload));
}

// Sends a message in as many fragments as necessary.
void HostilePeer::SendLong(Input* input) {
  const int path = input->Number<uint8_t>();
  wire::FrameHeader header;
  header.type = TypeOf(input->Number<uint8_t>());
  const uint8_t flags = input->Number<uint8_t>();
  header.stream = input->Number<uint8_t>();
  for (size_t rest = input->Number<uint16_t>(); rest > 0;) {
    const size_t part = std::min(rest, wire::kMaxFramePayload);
    rest -= part;
    header.flags = rest > 0 ? flags | wire::kMoreFragments : flags;
    Send(path, header, std::string(part, 'l'));
  }
}

void HostilePeer::SendAnnounced(Input* input) {
  const uint8_t regions = input->Number<uint8_t>();
  wire::FrameHeader header;
  header.type = FrameType::kAnnounce;
  header.stream = input->Number<uint8_t>();
  const size_t parts = 1 + regions / kPart % 8;
  const memory::Payload payload = InPieces(input->Number<uint16_t>(), parts);
  wire::Announce announce;
  announce.id = next_announce_++;
  announce.length = payload.size();
  for (uint32_t path : {1, 0}) {
    if ((regions & (path == 1 ? kOverFastPath : kOverLifeline)) == 0) continue;
    const auto exposure = endpoint(path)->Expose(payload, parts);
    if (!exposure.ok()) continue;
    wire::AnnouncedRegion region;
    region.path = path;
    for (const fabric::RemotePart& part : exposure->region) {
      region.parts.push_back({part.key, part.offset, part.length});
    }
    announce.regions.push_back(std::move(region));
  }
  Send((regions & kSentOverFastPath) != 0, header,
       wire::EncodeAnnounce(announce, wire::kVersion));
}

}  // namespace fuzz
}  // namespace penstock
