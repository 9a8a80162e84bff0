#include "tests/adversary/peer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::adversary {
namespace {

using Clock = std::chrono::steady_clock;

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Returns true if an event happens before `until`.
bool AwaitEvents(int socket, short events, Clock::time_point until,
                 short* happened = nullptr) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - Clock::now());
    pollfd wanted = {socket, events, 0};
    const int count =
        poll(&wanted, 1, static_cast<int>(std::max<int64_t>(0, left.count())));
    if (count < 0 && errno == EINTR) continue;
    if (happened != nullptr) *happened = wanted.revents;
    return count > 0;
  }
}

bool IsBulk(uint8_t type) {
  return type == unit::kReadData || type == unit::kPush;
}

}  // namespace

Peer::Peer(Side side, int socket, Traffic* traffic)
    : side_(side), socket_(socket), traffic_(traffic), ended_(socket < 0) {
  if (ended_) return;
  ++traffic_->connections;
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(socket_, F_SETFL, O_NONBLOCK);
}

Peer::~Peer() {
  if (socket_ >= 0) close(socket_);
}

std::unique_ptr<Peer> Peer::Connect(int port, Traffic* traffic) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto peer = std::make_unique<Peer>(Side::kClient, fd, traffic);
  const sockaddr_in address = Loopback(port);
  const int result =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (result == 0) return peer;
  if (errno != EINPROGRESS ||
      !AwaitEvents(fd, POLLOUT, Clock::now() + kPatience)) {
    return nullptr;
  }
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? std::move(peer) : nullptr;
}

bool Peer::Secure(const Identity& identity) {
  if (!identity.has_tls()) return true;
  const Clock::time_point until = Clock::now() + kPatience;
  tls_ = Tls::Create(is_client(), socket_, identity);
  while (tls_ != nullptr) {
    const Tls::Progress progress = tls_->Handshake();
    if (progress == Tls::Progress::kDone) return true;
    if (progress == Tls::Progress::kFailed) break;
    const bool reads = progress == Tls::Progress::kWantsToRead;
    if (!AwaitEvents(socket_, reads ? POLLIN : POLLOUT, until)) break;
  }
  return false;
}

bool Peer::Negotiate() {
  const Clock::time_point until = Clock::now() + kPatience;
  const std::string answer =
      is_client() ? ServerSettings(version) : ClientPreface();
  if (is_client() && !Write(ClientPreface(version))) return false;
  while (bytes_.size() < answer.size()) {
    if (!ReadSome(until)) return false;
  }
  if (bytes_.substr(0, answer.size()) != answer) return false;
  bytes_.erase(0, answer.size());
  negotiated_ = true;
  Parse();  // the hello may have arrived already
  return is_client() || Write(ServerSettings(version));
}

bool Peer::Greet(const Hello& hello) {
  Frame frame;
  frame.type = type::kHello;
  frame.payload = Encode(hello);
  if (!Send(frame)) return false;
  const absl::optional<Frame> answer = Await(type::kHello);
  if (!answer.has_value()) return false;
  const absl::optional<Hello> parsed = ParseHello(answer->payload);
  if (!parsed.has_value()) return false;
  peer_hello_ = *parsed;
  return true;
}

bool Peer::WaitToWrite() {
  Clock::time_point until = Clock::now() + kStall;
  while (!ended_) {
    const short wanted = reading == Reading::kNone ? POLLOUT : POLLOUT | POLLIN;
    short happened = 0;
    if (!AwaitEvents(socket_, wanted, until, &happened)) break;
    if ((happened & POLLOUT) != 0) return true;
    // Keeps waiting after input. Input proves that the victim works, but not
    // that the victim accepts this write.
    if ((happened & POLLIN) == 0) return false;
    ReadSome(Clock::now());
    if (reading == Reading::kDropped) parsed_.clear();
  }
  stalled_ = !ended_;
  return false;
}

ssize_t Peer::SendBytes(absl::string_view bytes) {
  if (tls_ != nullptr) return tls_->Send(bytes);
  return send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

// Receives up to `size` bytes. A TLS record has at most `size` bytes, so no
// bytes remain inside OpenSSL.
ssize_t Peer::ReceiveBytes(char* into, size_t size) {
  if (tls_ != nullptr) return tls_->Receive(into, size);
  return recv(socket_, into, size, 0);
}

void Peer::WriteRaw(absl::string_view bytes) {
  (void)!send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

bool Peer::Write(absl::string_view bytes) {
  while (!bytes.empty()) {
    if (socket_ < 0) return false;
    const ssize_t sent = SendBytes(bytes);
    if (sent > 0) {
      traffic_->bytes += sent;
      bytes.remove_prefix(sent);
    } else if (errno == EAGAIN || errno == EINTR) {
      if (!WaitToWrite()) return false;
    } else {
      return false;
    }
  }
  return true;
}

bool Peer::SendUnit(uint8_t type, uint64_t cookie, absl::string_view body) {
  ++traffic_->frames;
  return Write(Unit(type, cookie, body));
}

bool Peer::Send(Frame frame) { return Queue(std::move(frame)) && Flush(); }

bool Peer::Queue(Frame frame) {
  if (!frame.sequence.has_value() && IsSequenced(frame.type)) {
    frame.sequence = sequence_++;
  }
  if (!frame.ack.has_value()) frame.ack = received_;
  const std::string bytes = Encode(frame);
  if (queued_.size() + bytes.size() > unit::kMaxPacketBytes && !Flush()) {
    return false;
  }
  queued_ += bytes;
  ++traffic_->frames;
  if (frame.type == type::kHeaders) ++traffic_->headers;
  return true;
}

bool Peer::Flush() {
  if (queued_.empty()) return true;
  return Write(Unit(unit::kPacket, 0, std::exchange(queued_, {})));
}

bool Peer::SendLong(Frame frame) {
  const std::string payload = std::exchange(frame.payload, {});
  const uint8_t flags = frame.flags;
  for (size_t at = 0; at == 0 || at < payload.size(); at += kMaxFramePayload) {
    const bool more = payload.size() - at > kMaxFramePayload;
    frame.payload = payload.substr(at, kMaxFramePayload);
    frame.flags = more ? flags | kMoreFragments : flags;
    if (!Queue(frame)) return false;
  }
  return Flush();
}

uint32_t Peer::OpenStream(absl::string_view metadata) {
  if (!is_client()) {
    const absl::optional<Frame> opened = Await(type::kHeaders);
    return opened.has_value() ? opened->stream : 0;
  }
  Frame frame;
  frame.type = type::kHeaders;
  frame.stream = next_stream_++;
  frame.payload = std::string(metadata);
  return SendLong(frame) ? frame.stream : 0;
}

bool Peer::ReadSome(Clock::time_point until) {
  if (ended_) return false;
  if (!AwaitEvents(socket_, POLLIN, until)) return false;
  char bytes[64 * 1024];
  const ssize_t count = ReceiveBytes(bytes, sizeof bytes);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  ended_ = count <= 0;
  if (ended_) return false;
  bytes_.append(bytes, count);
  if (negotiated_) Parse();
  return true;
}

void Peer::Parse() {
  size_t at = 0;
  while (true) {
    const size_t skipped = std::min<uint64_t>(skipping_, bytes_.size() - at);
    skipping_ -= skipped;
    at += skipped;
    if (bytes_.size() - at < unit::kHeaderBytes) break;
    const absl::string_view rest = absl::string_view(bytes_).substr(at);
    Received received;
    received.size = Number(rest.substr(0, 4));
    received.unit = rest[4];
    received.cookie = Number(rest.substr(8, 8));
    if (IsBulk(received.unit)) {
      skipping_ = received.size;
    } else if (rest.size() - unit::kHeaderBytes < received.size) {
      break;
    } else {
      received.body =
          std::string(rest.substr(unit::kHeaderBytes, received.size));
      at += received.size;
    }
    at += unit::kHeaderBytes;
    if (received.unit == unit::kPacket) {
      ParseMessage(received.body);
    } else {
      parsed_.push_back(std::move(received));
    }
  }
  bytes_.erase(0, at);
}

void Peer::ParseMessage(absl::string_view body) {
  while (true) {
    absl::optional<Frame> frame = TakeFrame(&body);
    if (!frame.has_value()) return;
    if (IsSequenced(frame->type)) received_ = *frame->sequence;
    Received received;
    received.unit = unit::kPacket;
    received.frame = *std::move(frame);
    parsed_.push_back(std::move(received));
  }
}

absl::optional<Peer::Received> Peer::NextIfAny(
    std::chrono::milliseconds patience) {
  const Clock::time_point until = Clock::now() + patience;
  while (parsed_.empty()) {
    if (!ReadSome(until)) return absl::nullopt;
  }
  Received received = std::move(parsed_.front());
  parsed_.pop_front();
  return received;
}

absl::optional<Frame> Peer::Await(uint8_t type,
                                  std::chrono::milliseconds patience) {
  while (absl::optional<Received> received = NextIfAny(patience)) {
    if (received->unit == unit::kPacket && received->frame.type == type) {
      return std::move(received->frame);
    }
  }
  return absl::nullopt;
}

void Peer::Discard() {
  while (ReadSome(Clock::now())) parsed_.clear();
  parsed_.clear();
}

bool Peer::Finish() {
  if (tls_ != nullptr) tls_->Finish();
  shutdown(socket_, SHUT_WR);
  return AwaitEnd();
}

bool Peer::AwaitEnd() {
  const Clock::time_point until = Clock::now() + kPatience;
  while (ReadSome(until)) parsed_.clear();
  return ended_;
}

void Peer::Abort() {
  const linger now = {1, 0};
  setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close(socket_);
  socket_ = -1;
  ended_ = true;
}

Listener::Listener() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  if (bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(socket_, 64) != 0 ||
      getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return;
  }
  port_ = ntohs(address.sin_port);
}

Listener::~Listener() { close(socket_); }

std::unique_ptr<Peer> Listener::Accept(std::chrono::milliseconds patience,
                                       Traffic* traffic) {
  if (!AwaitEvents(socket_, POLLIN, Clock::now() + patience)) return nullptr;
  const int fd = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd < 0) return nullptr;
  return std::make_unique<Peer>(Peer::Side::kServer, fd, traffic);
}

}  // namespace penstock::adversary
