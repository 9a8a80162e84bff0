#include "tests/adversary/shm_peer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace penstock::adversary {
namespace {

constexpr int kSeals =
    F_SEAL_SHRINK | F_SEAL_GROW | 0x10 /* F_SEAL_FUTURE_WRITE */ | F_SEAL_SEAL;
constexpr size_t kTokenBytes = 16;
constexpr size_t kMappedBytes = page::kRing + page::kFirstRingBytes;
// The timeout for set-up messages, above the product's two seconds.
constexpr int kSetupPatienceMs = 5000;

std::atomic<uint64_t>* At(const SharedMemory& memory, uint64_t offset) {
  return reinterpret_cast<std::atomic<uint64_t>*>(memory.data() + offset);
}

// Returns the check value of a message of this length at this position of the
// ring.
uint32_t Stamp(uint64_t position, uint64_t length) {
  const uint64_t mixed = (position ^ length << 40) * 0x9e3779b97f4a7c15u;
  return ~static_cast<uint32_t>(mixed >> 32);
}

// Returns a name that neither the kernel nor another test uses.
std::string NewSocketName() {
  std::random_device random;
  std::string name = "penstock-";
  for (int i = 0; i < 8; ++i)
    absl::StrAppend(&name, absl::Hex(random() & 0xffff, absl::kZeroPad4));
  return name;
}

sockaddr_un Abstract(const std::string& name, socklen_t* size) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  *size = offsetof(sockaddr_un, sun_path) + 1 + name.size();
  return address;
}

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string NetworkNamespace() {
  char text[64];
  const ssize_t size = readlink("/proc/thread-self/ns/net", text, sizeof text);
  return std::string(text, size < 0 ? 0 : size);
}

// Returns the second line of the server's offer.
std::string SocketName(const Hello& hello) {
  for (const Offer& offer : hello.offers) {
    const std::vector<std::string> lines = absl::StrSplit(offer.data, '\n');
    if (offer.name == "shm" && lines.size() == 3) return lines[1];
  }
  return std::string();
}

}  // namespace

Hello ShmHello() {
  Hello hello;
  // Offers shm without a socket, because a server ignores the text of a
  // client's offer.
  hello.offers = {{true, "shm", "a client listens nowhere"}};
  return hello;
}

Hello ShmHello(const std::string& socket_name) {
  Hello hello;
  hello.offers = {
      {true, "shm",
       absl::StrCat(BootId(), "\n", socket_name, "\n", NetworkNamespace())}};
  return hello;
}

std::string SetupMessage(uint8_t kind, uint64_t size, uint32_t last,
                         absl::string_view token) {
  return absl::StrCat("PSHM", U16(setup::kVersion), U8(kind), U8(token.size()),
                      U64(size), U32(last), token);
}

SharedMemory::SharedMemory(uint64_t size, bool sealed)
    : size_(size),
      fd_(memfd_create("adversary", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  (void)!ftruncate(fd_, static_cast<off_t>(size));
  (void)!fallocate(fd_, 0, 0, static_cast<off_t>(size));
  data_ = static_cast<uint8_t*>(
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0));
  if (sealed) fcntl(fd_, F_ADD_SEALS, kSeals);
}

SharedMemory::~SharedMemory() {
  munmap(data_, size_);
  close(fd_);
}

VictimMemory::VictimMemory(int fd)
    : data_(static_cast<const uint8_t*>(
          mmap(nullptr, kMappedBytes, PROT_READ, MAP_SHARED, fd, 0))) {
  close(fd);
}

VictimMemory::~VictimMemory() {
  munmap(const_cast<uint8_t*>(data_), kMappedBytes);
}

std::vector<Frame> VictimMemory::Frames() const {
  std::vector<Frame> frames;
  const uint64_t head = Load(page::kHead);
  absl::string_view ring(reinterpret_cast<const char*>(data_ + page::kRing),
                         std::min(head, page::kFirstRingBytes));
  while (ring.size() >= 8) {
    const uint64_t length = Number(ring.substr(0, 4));
    absl::string_view message = ring.substr(8).substr(0, length);
    while (absl::optional<Frame> frame = TakeFrame(&message)) {
      frames.push_back(*std::move(frame));
    }
    ring.remove_prefix(std::min(ring.size(), 8 + (length + 7) / 8 * 8));
  }
  return frames;
}

uint64_t VictimMemory::Load(uint64_t offset) const {
  return reinterpret_cast<const std::atomic<uint64_t>*>(data_ + offset)->load();
}

SetupSocket::SetupSocket(const Hello& hello)
    : fd_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  socklen_t size;
  sockaddr_un address = Abstract(SocketName(hello), &size);
  (void)!connect(fd_, reinterpret_cast<sockaddr*>(&address), size);
}

SetupSocket::~SetupSocket() { close(fd_); }

bool SetupSocket::Send(absl::string_view message, const std::vector<int>& fds) {
  std::string bytes(message);
  iovec data = {&bytes[0], bytes.size()};
  std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* const part = CMSG_FIRSTHDR(&header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(part), fds.data(), fds.size() * sizeof(int));
  }
  return sendmsg(fd_, &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

int SetupSocket::Receive(std::string* message) {
  pollfd wanted = {fd_, POLLIN, 0};
  if (poll(&wanted, 1, kSetupPatienceMs) <= 0) return -1;
  char bytes[128];
  iovec data = {bytes, sizeof bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header = {};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t got = recvmsg(fd_, &header, MSG_CMSG_CLOEXEC);
  const cmsghdr* const part = CMSG_FIRSTHDR(&header);
  if (got <= 0 || part == nullptr) return -1;
  message->assign(bytes, got);
  int fd;
  std::memcpy(&fd, CMSG_DATA(part), sizeof fd);
  return fd;
}

SetupListener::SetupListener(int backlog)
    : name_(NewSocketName()),
      fd_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
  socklen_t size;
  sockaddr_un address = Abstract(name_, &size);
  (void)!bind(fd_, reinterpret_cast<sockaddr*>(&address), size);
  (void)!listen(fd_, backlog);
}

SetupListener::~SetupListener() { close(fd_); }

std::unique_ptr<SetupSocket> SetupListener::Accept() {
  pollfd wanted = {fd_, POLLIN, 0};
  if (poll(&wanted, 1, kSetupPatienceMs) <= 0) return nullptr;
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  return fd < 0 ? nullptr : std::make_unique<SetupSocket>(fd);
}

void WritePageHead(uint8_t* page) {
  const std::string head =
      absl::StrCat("PNCK", U32(setup::kVersion), U32(page::kRingBytes));
  std::memcpy(page, head.data(), head.size());
}

// Makes a path whose reader never sleeps, so that writers need not ring.
ShmPath::ShmPath(std::unique_ptr<SetupSocket> socket)
    : socket_(std::move(socket)), own_(page::kRing + page::kRingBytes) {
  WritePageHead(own_.data());
}

ShmPath::~ShmPath() = default;

std::unique_ptr<ShmPath> ShmPath::Connect(Peer* peer) {
  const Hello& hello = peer->peer_hello();
  if (hello.token.size() != kTokenBytes) return nullptr;
  std::unique_ptr<ShmPath> path(
      new ShmPath(std::make_unique<SetupSocket>(hello)));
  path->socket_->Send(
      SetupMessage(setup::kHello, page::kRingBytes, 0, hello.token),
      {path->own_.fd()});
  std::string welcome;
  const int fd = path->socket_->Receive(&welcome);
  if (fd < 0) return nullptr;
  path->victim_memory_ = std::make_unique<VictimMemory>(fd);
  return path->Agree(peer) ? std::move(path) : nullptr;
}

std::unique_ptr<ShmPath> ShmPath::Accept(Peer* peer, SetupListener* listener) {
  std::unique_ptr<SetupSocket> socket = listener->Accept();
  if (socket == nullptr) return nullptr;
  std::string hello;
  const int fd = socket->Receive(&hello);
  if (fd < 0) return nullptr;
  std::unique_ptr<ShmPath> path(new ShmPath(std::move(socket)));
  path->victim_memory_ = std::make_unique<VictimMemory>(fd);
  path->socket_->Send(SetupMessage(setup::kWelcome, page::kRingBytes, 0, ""),
                      {path->own_.fd()});
  return path->Agree(peer) ? std::move(path) : nullptr;
}

bool ShmPath::Agree(Peer* peer) {
  peer->Send(FrameOf(type::kPathReady, 0, "shm", 1));
  return peer->Await(type::kPathReady).has_value();
}

void ShmPath::Send(absl::string_view message) {
  const std::string bytes = absl::StrCat(
      U32(message.size()), U32(Stamp(head_, message.size())), message);
  for (size_t i = 0; i < bytes.size(); ++i) {
    own_.data()[page::kRing + (head_ + i) % page::kFirstRingBytes] = bytes[i];
  }
  head_ += (bytes.size() + 7) / 8 * 8;
  Store(page::kHead, head_);
}

uint64_t ShmPath::Load(uint64_t offset) const {
  return At(own_, offset)->load();
}

void ShmPath::Store(uint64_t offset, uint64_t value) {
  At(own_, offset)->store(value);
}

}  // namespace penstock::adversary
