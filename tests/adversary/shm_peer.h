// The shared memory side of a hostile peer: implements the set-up and the
// control page of docs/protocol.md independently.

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

// Returns a client's hello that offers shm, like a process on this host.
Hello ShmHello();
// Returns a server's hello that offers shm at the socket with this name.
Hello ShmHello(const std::string& socket_name);

namespace setup {
constexpr uint8_t kHello = 1;
constexpr uint8_t kWelcome = 2;
constexpr uint8_t kSegment = 3;
constexpr uint8_t kTakenBack = 4;
constexpr uint16_t kVersion = 5;
}  // namespace setup

std::string SetupMessage(uint8_t kind, uint64_t size, uint32_t last,
                         absl::string_view token);

// Writes the first fields of a control page with a ring of kRingBytes.
void WritePageHead(uint8_t* page);

// A piece of shared memory like the product's, allocated and sealed, but still
// writable here.
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

// Offsets of the control page's fields.
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

// The victim's control page and the beginning of its ring, read-only.
class VictimMemory {
 public:
  // Maps the memory of the descriptor, and takes ownership of the descriptor.
  explicit VictimMemory(int fd);
  ~VictimMemory();
  VictimMemory(const VictimMemory&) = delete;
  VictimMemory& operator=(const VictimMemory&) = delete;

  uint64_t Load(uint64_t offset) const;
  // Returns the frames that the victim has written, until its ring first wraps
  // around.
  std::vector<Frame> Frames() const;

 private:
  const uint8_t* const data_;
};

// A connection to a server's UNIX socket.
class SetupSocket {
 public:
  // Connects to the socket in the server's hello. If the hello has no socket,
  // Send() fails.
  explicit SetupSocket(const Hello& hello);
  // Takes ownership of the connected socket.
  explicit SetupSocket(int fd) : fd_(fd) {}
  ~SetupSocket();
  SetupSocket(const SetupSocket&) = delete;
  SetupSocket& operator=(const SetupSocket&) = delete;

  bool Send(absl::string_view message, const std::vector<int>& fds);
  // Returns the descriptor in the other side's message. Returns -1 if the other
  // side hangs up.
  int Receive(std::string* message);

 private:
  int fd_;
};

// An abstract UNIX socket to which a server's clients connect.
class SetupListener {
 public:
  // Listens. Up to `backlog` connections may wait.
  explicit SetupListener(int backlog = 8);
  ~SetupListener();
  SetupListener(const SetupListener&) = delete;
  SetupListener& operator=(const SetupListener&) = delete;

  const std::string& name() const { return name_; }
  // Accepts a connection. Returns null if nobody connects.
  std::unique_ptr<SetupSocket> Accept();

 private:
  const std::string name_;
  const int fd_;
};

// An shm path in use, next to a session with the hello ShmHello(). Null if the
// victim does not cooperate.
class ShmPath {
 public:
  static std::unique_ptr<ShmPath> Connect(Peer* peer);
  static std::unique_ptr<ShmPath> Accept(Peer* peer, SetupListener* listener);
  ~ShmPath();

  // Puts a message into the ring. All messages together must fit into the ring,
  // which does not wrap around.
  void Send(absl::string_view message);
  // Return this side's page and ring, and the victim's.
  SharedMemory* own() { return &own_; }
  SetupSocket* socket() { return socket_.get(); }
  const VictimMemory& victim_memory() const { return *victim_memory_; }
  uint64_t Load(uint64_t offset) const;
  void Store(uint64_t offset, uint64_t value);

 private:
  explicit ShmPath(std::unique_ptr<SetupSocket> socket);
  // Agrees on the path with the victim. Returns false if the victim does not
  // confirm that it is ready.
  bool Agree(Peer* peer);

  const std::unique_ptr<SetupSocket> socket_;
  SharedMemory own_;
  std::unique_ptr<VictimMemory> victim_memory_;
  uint64_t head_ = 0;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_SHM_PEER_H_
