// The shared memory side of a hostile client: the set-up and the control page
// of docs/protocol.md, by hand.

#ifndef PENSTOCK_TESTS_ADVERSARY_SHM_PEER_H_
#define PENSTOCK_TESTS_ADVERSARY_SHM_PEER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/adversary/peer.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {

// A hello that offers shm, as of a process on this host.
Hello ShmHello();

namespace setup {
constexpr uint8_t kHello = 1;
constexpr uint8_t kWelcome = 2;
constexpr uint8_t kSegment = 3;
constexpr uint8_t kTakenBack = 4;
constexpr uint16_t kVersion = 5;
}  // namespace setup

std::string SetupMessage(uint8_t kind, uint64_t size, uint32_t last,
                         absl::string_view token);

// Memory as the product shares it: allocated, sealed, and still written here.
class SharedMemory {
 public:
  explicit SharedMemory(uint64_t size, bool sealed = true);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int fd() const { return fd_; }
  uint64_t size() const { return size_; }
  uint8_t* data() const { return data_; }

 private:
  const uint64_t size_;
  int fd_;
  uint8_t* data_;
};

// Where fields of the control page lie.
namespace page {
constexpr uint64_t kHead = 64;
constexpr uint64_t kSenderWaits = 72;
constexpr uint64_t kClosed = 76;
constexpr uint64_t kTail = 128;
constexpr uint64_t kArmed = 192;
constexpr uint64_t kReleaseHead = 256;
constexpr uint64_t kReleases = 264;
constexpr uint64_t kRing = 8192;
constexpr uint64_t kFirstRingBytes = 8192;
constexpr uint64_t kRingBytes = 256 * 1024;
}  // namespace page

// One connection to a server's UNIX socket.
class SetupSocket {
 public:
  // To the one that the server's hello names; broken() where there is none.
  explicit SetupSocket(const Hello& hello);
  ~SetupSocket();
  SetupSocket(const SetupSocket&) = delete;
  SetupSocket& operator=(const SetupSocket&) = delete;

  bool Send(absl::string_view message, const std::vector<int>& fds);
  // The server's answer, and its descriptor; -1: it has hung up.
  int Receive(std::string* message);

 private:
  int fd_;
};

// A shm path that is in use, beside a session whose hello was ShmHello().
class ShmPath {
 public:
  // Null where the victim does not go along with it.
  static std::unique_ptr<ShmPath> Connect(Peer* peer);
  ~ShmPath();

  // A message into the ring. It is small, and so is all that goes there.
  void Send(absl::string_view message);
  // This side's page and ring, and the victim's.
  SharedMemory* own() { return &own_; }
  SetupSocket* socket() { return &socket_; }
  uint64_t Load(uint64_t offset) const;
  void Store(uint64_t offset, uint64_t value);

 private:
  explicit ShmPath(const Hello& hello);

  SetupSocket socket_;
  SharedMemory own_;
  uint64_t head_ = 0;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_SHM_PEER_H_
