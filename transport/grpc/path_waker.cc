#include "transport/grpc/path_waker.h"

#include <sys/epoll.h>

#include <atomic>
#include <utility>

#include "absl/strings/string_view.h"
#include "src/core/lib/iomgr/ev_posix.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/base/log.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace core {
namespace {

// A watch in gRPC's own set. Keeps itself alive while a notification may come.
class GrpcWaker : public PathWaker,
                  public std::enable_shared_from_this<GrpcWaker> {
 public:
  GrpcWaker(std::shared_ptr<fabric::Endpoint> path, Wake wake)
      : path_(std::move(path)), wake_(std::move(wake)) {}

  void Begin(int fd) {
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
  // Triggers the notification, with an error.
  void Stop() override {
    grpc_fd_shutdown(fd_, GRPC_ERROR_CREATE("the path is not used any more"));
  }

 private:
  void OnReadable(const grpc_error_handle& error) {
    if (error.ok()) {
      wake_();
      return grpc_fd_notify_on_read(fd_, &on_readable_);
    }
    int ours = -1;  // the path closes the descriptor
    grpc_fd_orphan(fd_, nullptr, &ours, "penstock path");
    wake_ = nullptr;
    self_ = nullptr;  // may destroy this object
  }

  const std::shared_ptr<fabric::Endpoint> path_;
  Wake wake_;
  grpc_fd* fd_ = nullptr;
  grpc_closure on_readable_;
  std::shared_ptr<GrpcWaker> self_;
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
        loop_->Watch(fd, EPOLLIN, [self](uint32_t) {
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
