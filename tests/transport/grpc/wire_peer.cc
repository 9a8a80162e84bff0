#include "tests/transport/grpc/wire_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "transport/base/byte_order.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace core {
namespace {

using wire::FrameType;

// The preface, and SETTINGS with the private setting (docs/protocol.md).
const char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const char kSettings[] = "\0\0\x06\x04\0\0\0\0\0\xfe\x10\x50\x45\x02\x02";
constexpr size_t kPrefaceBytes = sizeof kPreface - 1;
constexpr size_t kSettingsBytes = sizeof kSettings - 1;
constexpr size_t kUnitHeaderBytes = 16;
constexpr char kMessageUnit = 1;

template <typename Number>
void Append(Number number, std::string* out) {
  uint8_t bytes[sizeof number];
  base::StoreLittle<Number>(number, bytes);
  out->append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

void BePatient(int socket) {
  timeval patience = {};
  patience.tv_sec = 25;
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

std::string Metadata(
    const std::vector<std::pair<std::string, std::string>>& pairs) {
  std::string out;
  for (const auto& pair : pairs) {
    out.push_back(0);  // an entry as a literal
    Append<uint32_t>(static_cast<uint32_t>(pair.first.size()), &out);
    Append<uint32_t>(static_cast<uint32_t>(pair.second.size()), &out);
    absl::StrAppend(&out, pair.first, pair.second);
  }
  return out;
}

WirePeer::~WirePeer() { close(socket_); }

std::unique_ptr<WirePeer> WirePeer::Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  auto peer = std::make_unique<WirePeer>(fd);
  BePatient(fd);
  const sockaddr_in address = Loopback(port);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address),
              sizeof address) != 0) {
    return nullptr;
  }
  peer->Write({kPreface, kPrefaceBytes});
  peer->Write({kSettings, kSettingsBytes});
  std::string answer;
  if (!peer->ReadExactly(kSettingsBytes, &answer)) return nullptr;
  peer->SayHello(UINT32_MAX, "");
  return peer;
}

bool WirePeer::Serve(uint32_t max_streams) {
  BePatient(socket_);
  std::string offer;
  if (!ReadExactly(kPrefaceBytes + kSettingsBytes, &offer)) return false;
  Write({kSettings, kSettingsBytes});
  SayHello(max_streams, std::string(16, 't'));
  return true;
}

void WirePeer::SayHello(uint32_t max_streams, const std::string& token) {
  wire::Hello hello;
  hello.token = token;
  hello.stream_window = 1 << 20;
  hello.max_streams = max_streams;
  const std::string payload = wire::EncodeHello(hello);
  wire::FrameHeader header;
  header.type = FrameType::kHello;
  header.length = static_cast<uint32_t>(payload.size());
  std::string frame;
  wire::AppendFrame(header, payload, &frame);
  SendMessage(frame);
}

void WirePeer::Send(FrameType type, uint32_t stream, uint32_t aux,
                    absl::string_view payload) {
  wire::FrameHeader header;
  header.type = type;
  header.stream = stream;
  header.aux = aux;
  header.length = static_cast<uint32_t>(payload.size());
  header.sequence = ++sent_;
  header.ack = received_;
  std::string frame;
  wire::AppendFrame(header, payload, &frame);
  SendMessage(frame);
}

void WirePeer::SendMessage(absl::string_view frames) {
  std::string unit;
  Append<uint32_t>(static_cast<uint32_t>(frames.size()), &unit);
  unit += kMessageUnit;
  unit.resize(kUnitHeaderBytes);
  absl::StrAppend(&unit, frames);
  Write(unit);
}

void WirePeer::OpenCall(uint32_t stream) {
  Send(FrameType::kHeaders, stream, 0,
       Metadata({{":path", "/s/m"},
                 {":method", "POST"},
                 {":scheme", "http"},
                 {":authority", "x"},
                 {"te", "trailers"},
                 {"content-type", "application/grpc"}}));
}

void WirePeer::SendUnit(uint8_t type, uint64_t cookie, absl::string_view body) {
  std::string unit;
  Append<uint32_t>(static_cast<uint32_t>(body.size()), &unit);
  unit.push_back(static_cast<char>(type));
  unit.resize(8);
  Append<uint64_t>(cookie, &unit);
  absl::StrAppend(&unit, body);
  Write(unit);
}

void WirePeer::Write(absl::string_view bytes) {
  // Ignores errors: if the peer has gone, the next read fails.
  (void)!send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

bool WirePeer::ReadExactly(size_t size, std::string* bytes) {
  bytes->resize(size);
  return recv(socket_, &(*bytes)[0], size, MSG_WAITALL) ==
         static_cast<ssize_t>(size);
}

bool WirePeer::Receive(Received* received) {
  for (;;) {
    while (waiting_.empty()) {
      std::string header;
      if (!ReadExactly(kUnitHeaderBytes, &header)) return false;
      const uint32_t length = base::LoadLittle<uint32_t>(
          reinterpret_cast<const uint8_t*>(header.data()));
      std::string body;
      if (length > 0 && !ReadExactly(length, &body)) return false;
      if (header[4] == kMessageUnit) waiting_ = std::move(body);
    }
    absl::Span<const uint8_t> rest(
        reinterpret_cast<const uint8_t*>(waiting_.data()), waiting_.size());
    const absl::StatusOr<wire::Frame> frame = wire::TakeFrame(&rest);
    if (!frame.ok()) return false;
    received->header = frame->header;
    received->payload.assign(
        reinterpret_cast<const char*>(frame->payload.data()),
        frame->payload.size());
    waiting_.erase(0, waiting_.size() - rest.size());
    if (!wire::IsSequenced(received->header.type)) continue;
    received_ = received->header.sequence;
    return true;
  }
}

std::string WirePeer::Next() {
  Received frame;
  do {
    if (!Receive(&frame)) return "closed";
    // Skips entries of metadata.
  } while (frame.header.type == FrameType::kEntry);
  const uint32_t stream = frame.header.stream;
  switch (frame.header.type) {
    case FrameType::kHeaders:
      return absl::StrCat("headers ", stream);
    case FrameType::kMessage:
      return absl::StrCat(
          (frame.header.flags & wire::kLast) != 0 ? "last " : "", "message ",
          stream);
    case FrameType::kHalfClose:
      return absl::StrCat("half-close ", stream);
    case FrameType::kTrailers:
      return absl::StrCat("trailers ", stream);
    case FrameType::kReset:
      return absl::StrCat("reset ", stream);
    case FrameType::kGoaway:
      return absl::StrCat("goaway ", stream);
    case FrameType::kPing:
      ping_ = frame.payload;
      return "ping";
    case FrameType::kPong:
      return "pong";
    default:
      return absl::StrCat("frame of type ",
                          static_cast<int>(frame.header.type));
  }
}

WireListener::WireListener() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
  BePatient(socket_);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  if (bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(socket_, 16) != 0 ||
      getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return;
  }
  port_ = ntohs(address.sin_port);
}

WireListener::~WireListener() { close(socket_); }

std::unique_ptr<WirePeer> WireListener::Accept() {
  const int fd = accept(socket_, nullptr, nullptr);
  return fd < 0 ? nullptr : std::make_unique<WirePeer>(fd);
}

}  // namespace core
}  // namespace penstock
