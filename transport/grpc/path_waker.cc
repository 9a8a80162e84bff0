#include "transport/grpc/path_waker.h"

#include <sys/epoll.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"
#include "src/core/lib/iomgr/ev_posix.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/base/log.h"
#include "transport/base/mutex.h"
#include "transport/progress/event_loop.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace core {
namespace {

// A watch of the path's descriptor in gRPC's own epoll set. Keeps itself alive
// while a notification may come.
class GrpcWaker : public PathWaker,
                  public std::enable_shared_from_this<GrpcWaker> {
 public:
  GrpcWaker(std::shared_ptr<fabric::Endpoint> path, Wake wake)
      : path_(std::move(path)), wake_(std::move(wake)) {}

  void Begin(int fd) {
    base::MutexLock lock(&mu_);
    self_ = shared_from_this();
    fd_ = grpc_fd_create(fd, "penstock-path", /*track_err=*/false);
    GRPC_CLOSURE_INIT(
        &on_readable_,
        [](void* self, grpc_error_handle error) {
          static_cast<GrpcWaker*>(self)->OnReadable(error);
        },
        this, nullptr);
    grpc_fd_notify_on_read(fd_, &on_readable_);
  }
  // Stops the watch. The notification that is pending or running releases this
  // object.
  void Stop() override {
    base::MutexLock lock(&mu_);
    if (!is_waking_) ReleaseLocked();
    stopped_ = true;
  }

 private:
  void OnReadable(const grpc_error_handle& error) {
    if (!BeginWake(error)) {
      wake_ = nullptr;
      self_ = nullptr;  // may destroy this object
      return;
    }
    wake_();
    EndWake();
  }

  bool BeginWake(const grpc_error_handle& error) {
    base::MutexLock lock(&mu_);
    if (!error.ok()) ReleaseLocked();
    is_waking_ = error.ok() && !stopped_;
    return is_waking_;
  }

  void EndWake() {
    base::MutexLock lock(&mu_);
    is_waking_ = false;
    grpc_fd_notify_on_read(fd_, &on_readable_);
    if (stopped_) ReleaseLocked();
  }

  // Releases the descriptor. A pending notification then runs with an error.
  // Unlike grpc_fd_shutdown(), removes the descriptor from gRPC's set
  // explicitly, because the set would keep the descriptor as long as another
  // process has a duplicate.
  void ReleaseLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (fd_ == nullptr) return;
    // Leaves the descriptor in the set in a forked child: the set is the
    // parent's, and the parent still waits there.
    if (fork_count_ != progress::ForkCount()) {
      grpc_fd_shutdown(fd_, GRPC_ERROR_CREATE("the process forked"));
    }
    int ours = -1;  // the path closes the descriptor
    grpc_fd_orphan(std::exchange(fd_, nullptr), nullptr, &ours,
                   "penstock path");
  }

  const std::shared_ptr<fabric::Endpoint> path_;
  const uint32_t fork_count_ = progress::ForkCount();
  Wake wake_;
  grpc_closure on_readable_;
  std::shared_ptr<GrpcWaker> self_;

  base::Mutex mu_;
  grpc_fd* fd_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool is_waking_ ABSL_GUARDED_BY(mu_) = false;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
};

// Waits for the path's descriptor on the event loop's thread.
class LoopWaker : public PathWaker,
                  public std::enable_shared_from_this<LoopWaker> {
 public:
  LoopWaker(std::shared_ptr<fabric::Endpoint> path, Wake wake)
      : path_(std::move(path)), wake_(std::move(wake)) {}

  void Begin(int fd) {
    absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
    if (!loop.ok()) return;  // cannot happen: the loop has set up the path
    loop_ = *loop;
    std::shared_ptr<LoopWaker> self = shared_from_this();
    absl::StatusOr<progress::EventLoop::Id> watch =
        loop_->Watch(fd, EPOLLIN | EPOLLET, [self](uint32_t) {
          grpc_core::ApplicationCallbackExecCtx callback_exec_ctx;
          grpc_core::ExecCtx exec_ctx;
          if (!self->stopped_) self->wake_();
        });
    if (!watch.ok()) {
      return base::LogError("a path's input will be noticed late: " +
                            watch.status().ToString());
    }
    watch_ = *watch;
  }
  void Stop() override {
    stopped_ = true;
    if (loop_ != nullptr) loop_->Unwatch(watch_);
  }

 private:
  const std::shared_ptr<fabric::Endpoint> path_;
  const Wake wake_;
  progress::EventLoop* loop_ = nullptr;
  progress::EventLoop::Id watch_ = 0;
  std::atomic<bool> stopped_{false};
};

template <typename Waker>
std::shared_ptr<PathWaker> Begin(std::shared_ptr<fabric::Endpoint> path, int fd,
                                 PathWaker::Wake wake) {
  auto waker = std::make_shared<Waker>(std::move(path), std::move(wake));
  waker->Begin(fd);
  return waker;
}

}  // namespace

std::vector<std::shared_ptr<PathWaker>> PathWaker::Start(
    const std::shared_ptr<fabric::Endpoint>& path, const Wake& wake) {
  const bool is_epoll1 =
      absl::string_view(grpc_get_poll_strategy_name()) == "epoll1";
  std::vector<std::shared_ptr<PathWaker>> wakers;
  for (int fd : path->wakeup_fds()) {
    wakers.push_back(is_epoll1 ? Begin<GrpcWaker>(path, fd, wake)
                               : Begin<LoopWaker>(path, fd, wake));
  }
  return wakers;
}

}  // namespace core
}  // namespace penstock
