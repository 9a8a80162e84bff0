#include "transport/event_engine/threads/watches.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

#include "transport/base/status_util.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace event_engine {
namespace {

constexpr uint64_t kWakeId = 0;
constexpr int kEventsPerSleep = 64;

absl::Status AddTo(int epoll, int fd, uint32_t events, uint64_t id) {
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) {
    return absl::OkStatus();
  }
  return base::ErrnoStatus(errno, "epoll_ctl");
}

}  // namespace

Watches::Watches(base::UniqueFd epoll, base::UniqueFd wake)
    : fork_count_(progress::ForkCount()),
      epoll_(std::move(epoll)),
      wake_(std::move(wake)) {}

absl::StatusOr<std::unique_ptr<Watches>> Watches::Create() {
  base::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return base::ErrnoStatus(errno, "epoll_create1");
  base::UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return base::ErrnoStatus(errno, "eventfd");
  absl::Status added = AddTo(epoll.get(), wake.get(), EPOLLIN, kWakeId);
  if (!added.ok()) return added;
  return std::unique_ptr<Watches>(
      new Watches(std::move(epoll), std::move(wake)));
}

absl::StatusOr<Watches::Id> Watches::Add(int fd, Callback callback) {
  return AddFor(fd, EPOLLIN, /*is_socket=*/false, std::move(callback));
}

absl::StatusOr<Watches::Id> Watches::AddSocket(int fd, Callback callback) {
  return AddFor(fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP, /*is_socket=*/true,
                std::move(callback));
}

absl::StatusOr<Watches::Id> Watches::AddFor(int fd, uint32_t events,
                                            bool is_socket, Callback callback) {
  base::MutexLock lock(&mu_);
  const Id id = next_id_++;
  absl::Status added = AddTo(epoll_.get(), fd, events | EPOLLET, id);
  if (!added.ok()) return added;
  watched_[id] = {fd, std::make_shared<Callback>(std::move(callback)),
                  is_socket};
  if (is_socket) ++sockets_;
  return id;
}

void Watches::Remove(Id id) {
  if (fork_count_ != progress::ForkCount()) return;
  std::shared_ptr<Callback> callback;  // destroyed outside the lock
  base::MutexLock lock(&mu_);
  auto it = watched_.find(id);
  if (it == watched_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second.fd, nullptr);
  callback = std::move(it->second.callback);
  if (it->second.is_socket) --sockets_;
  watched_.erase(it);
}

void Watches::Sleep() {
  epoll_event events[kEventsPerSleep];
  const int count = epoll_wait(epoll_.get(), events, kEventsPerSleep, -1);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 != kWakeId) {
      Dispatch(events[i].data.u64);
      continue;
    }
    eventfd_t ignored;
    (void)eventfd_read(wake_.get(), &ignored);
  }
}

bool Watches::Look() {
  epoll_event events[kEventsPerSleep];
  const int count = epoll_wait(epoll_.get(), events, kEventsPerSleep, 0);
  bool any = false;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 == kWakeId) continue;
    Dispatch(events[i].data.u64);
    any = true;
  }
  return any;
}

void Watches::Dispatch(Id id) {
  std::shared_ptr<Callback> callback;
  {
    base::MutexLock lock(&mu_);
    auto it = watched_.find(id);
    if (it == watched_.end()) return;  // removed since epoll_wait
    callback = it->second.callback;
  }
  (*callback)();
}

void Watches::Wake() { (void)eventfd_write(wake_.get(), 1); }

}  // namespace event_engine
}  // namespace penstock
