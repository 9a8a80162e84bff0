#include "transport/monitoring/status_socket.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "transport/base/log.h"
#include "transport/base/status_util.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/shm/peer_user.h"
#include "transport/metrics/registry.h"
#include "transport/monitoring/close_in_child.h"
#include "transport/monitoring/connection_json.h"
#include "transport/monitoring/exposition.h"
#include "transport/monitoring/receive_bytes.h"
#include "transport/monitoring/status_client.h"
#include "transport/progress/aside.h"
#include "transport/progress/event_loop.h"
#include "transport/progress/foreign_fd.h"

namespace penstock {
namespace monitoring {
namespace {

constexpr int kMaxAskers = 8;
// Limits the clients that wait to be accepted, or rejected.
constexpr int kBacklog = 128;
constexpr absl::Duration kLimit = absl::Seconds(5);
constexpr absl::Duration kPauseWithoutDescriptors = absl::Seconds(1);
// The pause in accepting clients while too many sockets wait to be closed.
constexpr absl::Duration kPauseWhileBusy = absl::Milliseconds(100);
constexpr size_t kMaxQuestionBytes = 64;
constexpr size_t kMaxConnections = 10'000;

// Returns an empty string for an unknown question.
std::string AnswerTo(absl::string_view question) {
  std::string body;
  if (question == kAskMetrics) {
    body = MetricsAsText();
  } else if (question == kAskConnections) {
    body = ToJson(metrics::Registry::Get()->Connections(kMaxConnections));
  } else {
    return "";
  }
  return absl::StrCat(kAnswerPrefix, body.size(), "\n", body);
}

// A client that asks. Lives until it has its answer or its time is over. Only
// collecting runs on another thread than the loop's.
class Asker : public std::enable_shared_from_this<Asker> {
 public:
  // Increases `count`, and decreases it when destroyed.
  Asker(progress::EventLoop* loop, progress::ForeignFd socket,
        std::atomic<int>* count)
      : loop_(loop), socket_(std::move(socket)), count_(count) {
    ++*count_;
  }
  // Makes room first. A client that sees the end of its answer may connect
  // again, and must not be counted twice. Shuts the socket down, because a copy
  // in a forked child would keep the connection open.
  ~Asker() {
    --*count_;
    shutdown(socket_.get(), SHUT_RDWR);
  }

  void Start() {
    Watch(EPOLLIN, &Asker::OnReadable);
    std::weak_ptr<Asker> weak = shared_from_this();
    timer_ = loop_->RunAfter(kLimit, [weak] {
      if (std::shared_ptr<Asker> self = weak.lock()) self->End();
    });
  }

 private:
  void Watch(uint32_t events, void (Asker::*ready)()) {
    loop_->Unwatch(watch_);
    std::shared_ptr<Asker> self = shared_from_this();
    const absl::StatusOr<progress::EventLoop::Id> watch = loop_->Watch(
        socket_.get(), events, [self, ready](uint32_t) { ((*self).*ready)(); });
    watch_ = watch.value_or(0);
  }

  // Ends the connection. The last reference is held by the watch, or by the
  // task that collects.
  void End() {
    ended_ = true;
    loop_->Cancel(timer_);
    loop_->Unwatch(std::exchange(watch_, 0));
  }

  void OnReadable() {
    char bytes[kMaxQuestionBytes];
    const ssize_t got = ReceiveBytes(socket_.get(), bytes, sizeof bytes);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return End();
    question_.append(bytes, static_cast<size_t>(got));
    const size_t end = question_.find('\n');
    if (end == std::string::npos) {
      if (question_.size() > kMaxQuestionBytes) End();
      return;
    }
    question_.resize(end);
    loop_->Unwatch(std::exchange(watch_, 0));
    std::shared_ptr<Asker> self = shared_from_this();
    progress::RunAside(progress::Aside::kStatus, [self] {
      std::string answer = AnswerTo(self->question_);
      self->loop_->Post([self, answer] { self->Answer(answer); });
    });
  }

  void Answer(std::string answer) {
    if (ended_) return;
    answer_ = std::move(answer);
    Watch(EPOLLOUT, &Asker::OnWritable);
  }

  void OnWritable() {
    const ssize_t sent =
        send(socket_.get(), answer_.data() + sent_, answer_.size() - sent_,
             MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent < 0) return End();
    sent_ += static_cast<size_t>(sent);
    if (sent_ == answer_.size()) End();
  }

  progress::EventLoop* const loop_;
  const progress::ForeignFd socket_;
  std::atomic<int>* const count_;
  progress::EventLoop::Id watch_ = 0;
  progress::EventLoop::Id timer_ = 0;
  bool ended_ = false;
  std::string question_;
  std::string answer_;
  size_t sent_ = 0;
};

bool MayAsk(int socket) {
  const auto peer = fabric::shm::IdentifyPeer(socket);
  return peer.ok() && (!peer->is_other || peer->uid == 0);
}

// Binds to the first name that is free.
absl::Status Bind(int socket) {
  for (int name = 0; name < kStatusNames; ++name) {
    sockaddr_un address;
    const socklen_t size = StatusAddress(getpid(), &address, name);
    if (bind(socket, reinterpret_cast<sockaddr*>(&address), size) == 0) {
      return absl::OkStatus();
    }
    if (errno != EADDRINUSE) break;
  }
  return base::ErrnoStatus(
      errno, absl::StrCat("bind to @", StatusSocketName(getpid())));
}

absl::StatusOr<base::UniqueFd> Listen() {
  base::UniqueFd socket(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return base::ErrnoStatus(errno, "make a socket");
  const absl::Status bound = Bind(socket.get());
  if (!bound.ok()) return bound;
  if (listen(socket.get(), kBacklog) != 0) {
    return base::ErrnoStatus(errno, "listen");
  }
  return socket;
}

// The socket that accepts questions. Never destroyed, because the loop is not.
class Listener {
 public:
  Listener(progress::EventLoop* loop, base::UniqueFd socket)
      : loop_(loop), socket_(std::move(socket)) {}

  void Watch() {
    watch_ =
        loop_->Watch(socket_.get(), EPOLLIN, [this](uint32_t) { Accept(); })
            .value_or(0);
  }

 private:
  void Accept() {
    // Pauses while too many tasks wait. Each client costs a task, and anybody
    // can connect.
    if (progress::IsBusyAside()) return PauseFor(kPauseWhileBusy);
    progress::ForeignFd asker(base::UniqueFd(accept4(
        socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC)));
    if (asker.valid()) {
      if (askers_ >= kMaxAskers || !MayAsk(asker.get())) return;
      return std::make_shared<Asker>(loop_, std::move(asker), &askers_)
          ->Start();
    }
    if (errno != EMFILE && errno != ENFILE && errno != ENOMEM) return;
    PauseFor(kPauseWithoutDescriptors);
  }

  void PauseFor(absl::Duration pause) {
    loop_->Unwatch(std::exchange(watch_, 0));
    loop_->RunAfter(pause, [this] { Watch(); });
  }

  progress::EventLoop* const loop_;
  const base::UniqueFd socket_;
  std::atomic<int> askers_{0};
  progress::EventLoop::Id watch_ = 0;
};

// Runs on the loop's thread.
void Serve(progress::EventLoop* loop) {
  absl::StatusOr<base::UniqueFd> socket = Listen();
  if (!socket.ok()) {
    return base::LogWarning(
        absl::StrCat("no status socket: ", socket.status().message()));
  }
  CloseInChild(socket->get());
  (new Listener(loop, *std::move(socket)))->Watch();
}

}  // namespace

void ServeStatusFromFirstConnection() {
  metrics::Registry::Get()->CallAtFirstSource([] {
    absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
    if (!loop.ok()) return;  // without a loop the connection has tcp only
    progress::EventLoop* const of_process = *loop;
    of_process->Post([of_process] { Serve(of_process); });
  });
}

}  // namespace monitoring
}  // namespace penstock
