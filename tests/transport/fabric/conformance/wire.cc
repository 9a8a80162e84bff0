#include "tests/transport/fabric/conformance/wire.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "gtest/gtest.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

// The capacity of the wire, in bytes. About as many as a socket buffer holds.
constexpr size_t kCapacity = 200 * 1000;

}  // namespace

size_t MemoryWire::Cut(size_t size) {
  if (cuts_ == Cuts::kNone || size == 0) return size;
  const size_t longest = size_t{1} << (random_() % 18);
  return std::min<size_t>(size, 1 + random_() % longest);
}

size_t MemoryWire::Put(Side from, absl::Span<const uint8_t> bytes) {
  // Drops the bytes, because the receiving side has closed. The sender does not
  // notice.
  if (closed_[Index(Other(from))]) return bytes.size();
  std::string& to = to_[Index(Other(from))];
  const size_t size = Cut(std::min(bytes.size(), kCapacity - to.size()));
  to.append(reinterpret_cast<const char*>(bytes.data()), size);
  return size;
}

std::vector<uint8_t> MemoryWire::Take(Side to) {
  std::string& waiting = to_[Index(to)];
  const size_t size = Cut(waiting.size());
  std::vector<uint8_t> bytes(size);
  waiting.copy(reinterpret_cast<char*>(bytes.data()), size);
  waiting.erase(0, size);
  return bytes;
}

bool MemoryWire::HasEnded(Side to) {
  return closed_[Index(Other(to))] && to_[Index(to)].empty();
}

SocketWire::SocketWire() {
  int sockets[2];
  const int made = socketpair(
      AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets);
  EXPECT_EQ(made, 0) << "socketpair: errno " << errno;
  if (made != 0) return;
  for (int i : {0, 1}) sockets_[i] = base::UniqueFd(sockets[i]);
}

size_t SocketWire::Put(Side from, absl::Span<const uint8_t> bytes) {
  const ssize_t sent =
      send(Socket(from).get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) return sent;
  if (errno == EAGAIN) return 0;
  return bytes.size();  // the peer has left, which Take() reports
}

std::vector<uint8_t> SocketWire::Take(Side to) {
  std::vector<uint8_t> bytes(64 * 1024);
  const ssize_t size = recv(Socket(to).get(), bytes.data(), bytes.size(), 0);
  if (size == 0 || (size < 0 && errno != EAGAIN)) {
    ended_[static_cast<int>(to)] = true;
  }
  bytes.resize(std::max<ssize_t>(size, 0));
  bytes.shrink_to_fit();
  return bytes;
}

}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
