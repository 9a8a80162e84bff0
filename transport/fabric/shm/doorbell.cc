#include "transport/fabric/shm/doorbell.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "transport/base/descriptors.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// Returns false if the ring failed.
bool RingAt(int fd) {
  constexpr uint64_t kNothing = 0;
  ssize_t written;
  do {
    written = write(fd, &kNothing, sizeof kNothing);
  } while (written < 0 && errno == EINTR);
  return written == sizeof kNothing;
}

}  // namespace

Doorbell::Doorbell() : fork_count_(progress::ForkCount()) {}

Doorbell::~Doorbell() {
  if (fork_count_ != progress::ForkCount()) (void)own_.Release();
}

void Doorbell::Offer(int socket) {
  if (!base::Descriptors::HaveRoomForDoorbell()) return;
  base::UniqueFd made(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made.valid()) return;
  SetupMessage message;
  message.kind = SetupMessage::Kind::kDoorbell;
  if (SendSetup(socket, message, made.get()).ok()) own_ = std::move(made);
}

absl::Status Doorbell::TakePeers(progress::ForeignFd fd) {
  if (std::exchange(has_taken_, true)) {
    return absl::InvalidArgumentError("the peer passed a second doorbell");
  }
  if (!own_.valid() && !base::Descriptors::HaveRoomForDoorbell()) {
    return absl::OkStatus();
  }
  peers_ = std::move(fd);
  peers_number_.store(peers_.get(), std::memory_order_release);
  return absl::OkStatus();
}

void Doorbell::WakeOwner() const {
  if (own_.valid()) (void)RingAt(own_.get());
}

bool Doorbell::Ring() const {
  const int fd = peers_number_.load(std::memory_order_acquire);
  return fd >= 0 && RingAt(fd);
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
