#include "transport/connection/connection.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/log.h"
#include "transport/base/steady_time.h"
#include "transport/connection/idle_blocks.h"
#include "transport/paths/short_lives.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace connection {
namespace {

// Limits the time in which the peer must read the remaining output after a
// session's end. After that time the rest of the output is dropped.
constexpr absl::Duration kLingerLimit = absl::Seconds(5);

// Limits how long frames are deferred, because meanwhile the peer keeps the
// messages that these frames release. Usually another frame is sent earlier,
// and takes the deferred frames along. Under a shorter limit, a busy connection
// would often wake gRPC's thread for timers.
constexpr absl::Duration kDeferLimit = absl::Milliseconds(25);

// Limits the tries of TryLock(). Most sections are shorter. A section with a
// short sendmsg() takes about 10 us.
constexpr absl::Duration kTryLimit = absl::Microseconds(50);

}  // namespace

Connection::Connection(const Config& config, std::shared_ptr<Executor> executor,
                       std::unique_ptr<fabric::tcp::ByteStream> stream)
    : fork_count_(progress::ForkCount()),
      began_(base::SteadyNow()),
      is_client_(config.is_client),
      tolerates_tcp_(config.settings.policy != Policy::kRequire ||
                     config.settings.Allows(FabricName(Fabric::kTcp))),
      peer_(config.peer),
      executor_(std::move(executor)),
      stream_(std::move(stream)),
      side_paths_(config.settings, config.is_private, config.devices,
                  config.may_open_sockets ? config.peer : std::string()),
      lifeline_(new fabric::tcp::Endpoint(stream_.get())),
      session_(std::make_unique<session::Session>(
          SessionConfig(config, side_paths_),
          std::unique_ptr<fabric::Endpoint>(lifeline_), this, &setup_)),
      liveness_(config, session_.get(), this,
                [this] {
                  mu_.AssertHeld();
                  return HasCalls();
                }),
      poller_(this, executor_.get(), &mu_),
      setup_(config, began_, &side_paths_, session_.get(), this,
             [this](const absl::Status& status) {
               mu_.AssertHeld();
               Settle(status);
             }),
      linger_timer_(this),
      deferred_timer_(this) {
  FreeIdleBlocks();
}

Connection::~Connection() = default;

bool Connection::IsForeign() const {
  return fork_count_ != progress::ForkCount();
}

void Connection::Register() {
  counted_ = std::make_unique<metrics::Registration>(this);
}

// Removes the connection from the metrics before the front end's destructor
// runs.
void Connection::Unref() {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  counted_ = nullptr;
  delete this;
}

bool Connection::RefUnlessDead() {
  int refs = refs_.load(std::memory_order_relaxed);
  while (refs > 0) {
    if (refs_.compare_exchange_weak(refs, refs + 1)) return true;
  }
  return false;
}

std::shared_ptr<metrics::Source> Connection::Keep() {
  if (!RefUnlessDead()) return nullptr;
  std::shared_ptr<Connection> share = ShareAs<Connection>();
  refs_.fetch_sub(1, std::memory_order_relaxed);  // the share has a reference
  return share;
}

void Connection::Collect(metrics::Snapshot* snapshot) {
  base::MutexLock lock(&mu_);
  session_->Collect(snapshot);
}

bool Connection::Describe(metrics::ConnectionInfo* info) {
  info->peer = peer_;
  base::MutexLock lock(&mu_);
  return session_->Describe(info);
}

// Tries for a while, because most sections are short. Giving up costs the
// caller a wake-up of another thread.
bool Connection::TryLock(bool may_block) {
  Ref();
  if (may_block) {
    mu_.Lock();
  } else {
    const absl::Time end = base::SteadyNow() + kTryLimit;
    while (!mu_.TryLock()) {
      if (base::SteadyNow() < end) continue;
      Unref();
      return false;
    }
  }
  if (IsForeign()) {
    stream_ended_ = true;  // for the forked child
    session_->Abandon(absl::UnavailableError("the process forked"));
  }
  return true;
}

void Connection::Begin(std::function<void()> pinged) {
  setup_.Start();
  liveness_.Start(std::move(pinged));
}

void Connection::GiveUpPath(const absl::Status& why) {
  Enter([&] {
    mu_.AssertHeld();
    session_->path().Lose(why);
  });
  Release();
}

// Watches the session's present path. Adds the path to the PollSet, which arms
// the path, before the front end watches for wake-ups.
void Connection::WatchPath() {
  poller_.Watch(session_->path().endpoint());
  OnPathChanged(session_->path().endpoint());
}

void Connection::OnStreamClosed(const std::function<absl::Status()>& cause) {
  // Reads the fast path first, because the peer may have sent the reason for
  // the end over it.
  session_->DrainFastPath();
  lifeline_->Break(cause());
}

void Connection::SendDeferredSoon() {
  deferred_timer_.Start(kDeferLimit, [this] {
    mu_.AssertHeld();
    session_->SendDeferred();
  });
}

void Connection::EndWhenWritten() {
  if (stream_ended_) return;
  if (lifeline_->idle()) return EndNow();
  if (linger_timer_.pending()) return;
  linger_timer_.Start(kLingerLimit, [this] {
    mu_.AssertHeld();
    EndNow();
  });
}

void Connection::EndNow() {
  if (std::exchange(stream_ended_, true)) return;
  linger_timer_.Cancel();
  EndStream();
}

void Connection::Settle(const absl::Status& status) {
  if (!std::exchange(settled_, true)) OnSettled(status);
}

void Connection::OnClosed(const absl::Status& cause) {
  if (!absl::IsUnavailable(cause)) {  // not an ordinary end
    base::LogWarning(
        absl::StrCat("session with ", peer_, " ended: ", cause.ToString()));
  }
  Settle(cause);
  if (is_client_) {
    paths::ShortLives::OfProcess()->OnEnd(began_, base::SteadyNow());
  }
  setup_.End();
  liveness_.End();
  deferred_timer_.Cancel();
  OnEnded(cause);
}

}  // namespace connection
}  // namespace penstock
