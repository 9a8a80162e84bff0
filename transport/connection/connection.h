// A connection: a session on a byte stream, with additional paths.

#ifndef PENSTOCK_TRANSPORT_CONNECTION_CONNECTION_H_
#define PENSTOCK_TRANSPORT_CONNECTION_CONNECTION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "transport/base/mutex.h"
#include "transport/connection/config.h"
#include "transport/connection/liveness.h"
#include "transport/connection/path_poller.h"
#include "transport/connection/session_setup.h"
#include "transport/connection/timer.h"
#include "transport/fabric/tcp/byte_stream.h"
#include "transport/fabric/tcp/endpoint.h"
#include "transport/metrics/registry.h"
#include "transport/paths/side_paths.h"
#include "transport/session/session.h"

namespace penstock {
namespace connection {

// The common part of all front ends. A front end derives from this class,
// provides an executor and a byte stream, accepts the peer's streams, and
// handles the session's events about streams.
//
// Thread-safe: one mutex guards all members. A front end uses the session in
// sections of this form: Lock(); ...; Flush(clock); ...; Sync(); ...;
// mu_.unlock(); Unref();
//
// Reference-counted; the last Unref() destroys the connection. Until the
// session has ended, each timer, each attempt to connect a path, and the poll
// set hold one reference.
class Connection : public session::SessionEvents,
                   public metrics::Source,
                   public PathPoller::Owner,
                   public Host {
 public:
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  bool is_client() const { return is_client_; }
  const std::string& peer() const { return peer_; }
  // Returns the session. Call under the lock.
  session::Session* session() {
    mu_.AssertHeld();
    return session_.get();
  }
  // Returns true in the child of a fork: the connection belongs to the parent
  // and must not be used.
  bool IsForeign() const;

  void Ref() final { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() final;
  // Adds a reference, for a caller that holds none. Returns false if the
  // connection is being destroyed.
  bool RefUnlessDead();
  std::shared_ptr<Host> Share() final { return ShareAs<Connection>(); }

  std::shared_ptr<metrics::Source> Keep() final;
  void Collect(metrics::Snapshot* snapshot) final;
  bool Describe(metrics::ConnectionInfo* info) final;

  Executor* executor() const final { return executor_.get(); }
  bool MayGiveUpPath() const final { return tolerates_tcp_; }
  void GiveUpPath(const absl::Status& why) final;

 protected:
  Connection(const Config& config, std::shared_ptr<Executor> executor,
             std::unique_ptr<fabric::tcp::ByteStream> stream);
  // Called after the front end's destructor. No other thread uses the
  // connection any more.
  ~Connection() override;

  // Adds the connection to the metrics. Call after the front end was
  // constructed.
  void Register();
  // Sends the hello and starts the timeouts. Calls `pinged`, which may be null,
  // after each keepalive ping.
  void Begin(std::function<void()> pinged) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Begins a section: takes a reference and the lock. In a forked child, also
  // closes the session, without sending anything.
  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION(mu_) ABSL_NO_THREAD_SAFETY_ANALYSIS {
    (void)TryLock(/*may_block=*/true);
  }
  // As Lock(), but returns false if `may_block` is false and another thread
  // still holds the lock after 50 us.
  bool TryLock(bool may_block) ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true, mu_);
  // Sends all output that was added in the section. `now` returns
  // Executor::Now(); a template avoids a virtual call.
  template <typename Clock>
  void Flush(Clock now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    liveness_.SyncHeartbeat();
    session_->Flush();
    if (session_->has_deferred() && !deferred_timer_.pending()) {
      SendDeferredSoon();
    }
    liveness_.Observe(now);
  }
  // Updates the connection after a change of the session: watches the new path,
  // starts the negotiation's timeout, or ends the stream. Call after Flush().
  void Sync() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (session_->path().endpoint() != poller_.path()) WatchPath();
    if (session_->closed()) EndWhenWritten();
    setup_.Sync();
  }
  // Returns true if the peer's streams may be accepted: the session uses a path
  // that the settings allow, and the peer reads the replies to its other calls.
  bool MayAccept() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return session_->accepts_streams() &&
           (tolerates_tcp_ || session_->path().in_use());
  }

  fabric::tcp::ByteStream* stream() const { return stream_.get(); }
  bool stream_ended() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stream_ended_;
  }
  // Calls EndStream(), once.
  void EndNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Returns a shared pointer that holds one reference. Any thread may release
  // the pointer.
  template <typename FrontEnd>
  std::shared_ptr<FrontEnd> ShareAs() {
    Ref();
    return std::shared_ptr<FrontEnd>(
        static_cast<FrontEnd*>(this),
        [](Connection* connection) { connection->Release(); });
  }

  // Handles the end of the byte stream. First delivers input that has arrived
  // over the fast path, because that input may explain the end; a GOAWAY does.
  // Then calls `cause`, and passes its result to the lifeline.
  void OnStreamClosed(const std::function<absl::Status()>& cause)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The functions below are for the front end to override. All except
  // PollPath() and Release() are called under the lock.
  //
  // Drops a reference. Called on any thread.
  virtual void Release() { Unref(); }
  // Polls the path in a section of the front end.
  bool PollPath() override = 0;
  // Starts to watch the wake-ups of `path` in place of the path watched so far.
  // Null means no path.
  virtual void OnPathChanged(const std::shared_ptr<fabric::Endpoint>& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // Reports the result of the setup, once. The status is OK if a path that the
  // settings allow carries the session. Otherwise the status is the reason of
  // the session's end.
  virtual void OnSettled(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // Called when the session has ended, after the streams' events.
  virtual void OnEnded(const absl::Status& cause)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // Ends the byte stream. Called when all output has been written, or when the
  // peer has not read the output in time.
  virtual void EndStream() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  virtual bool HasCalls() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;

 private:
  const uint32_t fork_count_;
  const absl::Time began_;
  const bool is_client_;
  const bool tolerates_tcp_;
  const std::string peer_;
  const std::shared_ptr<Executor> executor_;
  std::atomic<int> refs_{1};

 protected:
  // The lock of all members. Differs from gRPC's mutex, which checks for
  // deadlocks on each use.
  base::Mutex mu_;

 private:
  const std::unique_ptr<fabric::tcp::ByteStream> stream_;
  paths::SidePaths side_paths_;

 protected:
  fabric::tcp::Endpoint* const lifeline_;  // owned by session_
  const std::unique_ptr<session::Session> session_ ABSL_PT_GUARDED_BY(mu_);
  Liveness liveness_ ABSL_GUARDED_BY(mu_);
  PathPoller poller_;

 private:
  void WatchPath() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SendDeferredSoon() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndWhenWritten() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Settle(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  void OnClosed(const absl::Status& cause) final
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  SessionSetup setup_ ABSL_GUARDED_BY(mu_);
  Timer linger_timer_ ABSL_GUARDED_BY(mu_);
  Timer deferred_timer_ ABSL_GUARDED_BY(mu_);
  bool settled_ ABSL_GUARDED_BY(mu_) = false;
  bool stream_ended_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<metrics::Registration> counted_;
};

}  // namespace connection
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_CONNECTION_CONNECTION_H_
