#include "tests/transport/session/raw_peer.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "transport/wire/hello.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace session {
namespace {

using wire::FrameType;

const char* Name(FrameType type) {
  switch (type) {
    case FrameType::kHello:
      return "hello";
    case FrameType::kPathReady:
      return "path ready";
    case FrameType::kPathLost:
      return "path lost";
    case FrameType::kAck:
      return "ack";
    case FrameType::kPathWanted:
      return "path wanted";
    case FrameType::kPathOffered:
      return "path offered";
    case FrameType::kEntry:
      return "entry";
    case FrameType::kHeaders:
      return "headers";
    case FrameType::kMessage:
      return "message";
    case FrameType::kAnnounce:
      return "announce";
    case FrameType::kRelease:
      return "release";
    case FrameType::kHalfClose:
      return "half close";
    case FrameType::kTrailers:
      return "trailers";
    case FrameType::kReset:
      return "reset";
    case FrameType::kCredit:
      return "credit";
    case FrameType::kGoaway:
      return "goaway";
    case FrameType::kPing:
      return "ping";
    case FrameType::kPong:
      return "pong";
  }
  return "?";
}

std::string ToString(absl::Span<const uint8_t> bytes) {
  return std::string(bytes.begin(), bytes.end());
}

std::string ToLine(const wire::Frame& frame) {
  const std::string name = Name(frame.header.type);
  switch (frame.header.type) {
    case FrameType::kHello:
      return name;
    case FrameType::kAck:
      return absl::StrCat(name, " ", frame.header.ack);
    case FrameType::kRelease:
    case FrameType::kPing:
    case FrameType::kPong:
      return absl::StrCat(name, " ",
                          wire::Reader(frame.payload).Number<uint64_t>());
    case FrameType::kPathReady:
    case FrameType::kPathLost:
    case FrameType::kPathWanted:
    case FrameType::kPathOffered:
      return absl::StrCat(name, " ", frame.header.aux, " ",
                          Brief(ToString(frame.payload)));
    case FrameType::kReset:
    case FrameType::kCredit:
      return absl::StrCat(name, " ", frame.header.stream, " ",
                          frame.header.aux);
    default:
      return absl::StrCat(name, " ", frame.header.stream, " ",
                          Brief(ToString(frame.payload)));
  }
}

}  // namespace

RawPeer::RawPeer(std::unique_ptr<fabric::Endpoint> endpoint)
    : endpoint_(std::move(endpoint)) {
  endpoint_->Start(this);
}

void RawPeer::OnPacket(absl::Span<const uint8_t> packet) {
  while (!packet.empty()) {
    absl::StatusOr<wire::Frame> frame = wire::TakeFrame(&packet);
    ASSERT_TRUE(frame.ok()) << frame.status();
    received_ = std::max(received_, frame->header.sequence);
    lines_.push_back(ToLine(*frame));
  }
}

void RawPeer::SendBytes(absl::string_view bytes) {
  ASSERT_TRUE(endpoint_->Send(
      {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
}

void RawPeer::Send(wire::FrameHeader header, absl::string_view payload) {
  header.length = static_cast<uint32_t>(payload.size());
  if (wire::IsSequenced(header.type) && header.sequence == 0) {
    header.sequence = next_sequence++;
  }
  std::string bytes;
  wire::AppendFrame(header, payload, &bytes);
  SendBytes(bytes);
}

void RawPeer::SendHello(uint32_t stream_window, uint32_t max_streams) {
  wire::Hello hello;
  hello.stream_window = stream_window;
  hello.max_streams = max_streams;
  hello.offers = ClientConfig().offers;
  Send(Header(FrameType::kHello), wire::EncodeHello(hello));
}

Lines RawPeer::Take() { return std::exchange(lines_, Lines()); }

wire::FrameHeader Header(FrameType type, uint32_t stream, uint32_t aux) {
  wire::FrameHeader header;
  header.type = type;
  header.stream = stream;
  header.aux = aux;
  return header;
}

std::string IdPayload(uint64_t id) {
  std::string payload;
  wire::AppendNumber<uint64_t>(id, &payload);
  return payload;
}

void RawPeerTest::Begin(const Config& config) {
  peer_ = std::make_unique<Peer>(config, lifeline_.Take(Side::kB));
  raw_ = std::make_unique<RawPeer>(lifeline_.Take(Side::kA));
  (*peer_)->Start();
  peer_->Flush();
}

void RawPeerTest::Open(const Config& config) {
  Begin(config);
  raw_->SendHello();
  Run();
  peer_->Take();
  raw_->Take();
}

void RawPeerTest::AddPath() {
  (*peer_)->path().Add("shm", fast_.Take(Side::kB));
  raw_fast_ = std::make_unique<RawPeer>(fast_.Take(Side::kA));
  SendPathFrame(FrameType::kPathReady, 1, "shm");
  Run();
  peer_->Take();
  raw_->Take();
}

void RawPeerTest::SendPathFrame(FrameType type, uint32_t epoch,
                                absl::string_view payload) {
  raw_->Send(Header(type, 0, epoch), payload);
}

void RawPeerTest::Run() {
  peer_->Flush();
  while (lifeline_.Step() || fast_.Step()) peer_->Flush();
}

}  // namespace session
}  // namespace penstock
