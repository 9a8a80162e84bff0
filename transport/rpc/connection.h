// One connection: a session on a socket of its own, with the paths beside it.

#ifndef PENSTOCK_TRANSPORT_RPC_CONNECTION_H_
#define PENSTOCK_TRANSPORT_RPC_CONNECTION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "transport/base/limited_log.h"
#include "transport/base/mutex.h"
#include "transport/connection/heartbeat.h"
#include "transport/connection/keepalive.h"
#include "transport/connection/path_backoff.h"
#include "transport/connection/path_poller.h"
#include "transport/fabric/tcp/endpoint.h"
#include "transport/metrics/registry.h"
#include "transport/paths/half_open.h"
#include "transport/paths/side_paths.h"
#include "transport/progress/event_loop.h"
#include "transport/rpc/late_release.h"
#include "transport/rpc/loop_timer.h"
#include "transport/rpc/socket.h"
#include "transport/session/session.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace rpc {

// Thread-safe: one mutex guards everything. Input and timers come on the thread
// of EventLoop::GetPolling(); output leaves on the thread that adds it.
//
// Reference-counted. Whatever may still call it holds a reference: the watch of
// its socket, timers, the poll set, attempts to connect a path. All let go of
// it when the session has ended, at the latest after Close().
class Connection final : public session::SessionEvents,
                         private connection::PathPoller::Owner,
                         public metrics::Source {
 public:
  struct Config {
    bool is_client = false;
    uint8_t version = wire::kVersion;  // on which both sides have agreed
    Settings settings;
    std::string peer;  // its address, for people
    connection::Keepalive::Config keepalive;
    int64_t max_receive_bytes = -1;  // of one payload; negative: no limit
    // A server's: calls that the client may have open at once.
    uint32_t max_streams = UINT32_MAX;
    // A server's: of record::Recorder; 0: its calls are not recorded.
    uint64_t recorded_client = 0;
    // A server's. Given back when a path is chosen or the session ends.
    paths::HalfOpen::Place half_open;
  };

  // Hears of what happens to `connection`, under its lock, and may use the
  // session. Let go of when the session has ended.
  class Events {
   public:
    virtual ~Events() = default;
    // A path that satisfies the settings carries the session. Once.
    virtual void OnSettled(Connection* connection) = 0;
    // A server's: the client has begun a call. Attach the stream.
    virtual void OnStream(Connection* connection, uint32_t stream) = 0;
    // The last event; streams have been told before.
    virtual void OnClosed(Connection* connection, const absl::Status& why) = 0;
  };

  // Takes over a socket on which both sides have greeted.
  static std::shared_ptr<Connection> Create(const Config& config,
                                            progress::EventLoop* loop,
                                            base::UniqueFd socket,
                                            std::shared_ptr<Events> events);
  // Begins the session. `received` came behind the greeting. Call it once.
  void Start(absl::string_view received);

  // Who took the lock. Whoever makes a call may hold locks that callbacks take.
  enum class Entry { kCall, kInput };

  // Holds the lock. Sends what was added, and does what follows from it, when
  // it goes.
  class ABSL_SCOPED_LOCKABLE Section {
   public:
    explicit Section(Connection* connection, Entry entry = Entry::kCall)
        ABSL_EXCLUSIVE_LOCK_FUNCTION(connection->mu_);
    ~Section() ABSL_UNLOCK_FUNCTION() { connection_->FinishAndUnlock(entry_); }

   private:
    LateRelease late_release_;  // destroyed last, after unlocking
    Connection* const connection_;
    const Entry entry_;
  };

  // For calls, under the lock.
  session::Session* session() {
    mu_.AssertHeld();
    return session_.get();
  }
  // Ends the session where no more are left: an id is used once.
  uint32_t NextStream();
  // Runs `callback` on the loop's thread, without locks, soon, and not within a
  // call of the application. Callbacks run in the order in which they are
  // given.
  void RunLater(std::function<void()> callback) {
    mu_.AssertHeld();
    later_.push_back(std::move(callback));
  }
  // For keepalive: calls are open. Counts them.
  void AddCalls(int count) {
    mu_.AssertHeld();
    calls_ += count;
  }

  // Ends the session: its calls fail with UNAVAILABLE and this reason.
  void Close(const absl::Status& why);
  session::PathDescription DescribePath();
  session::Counters counters();
  const std::string& peer() const { return config_.peer; }
  uint64_t recorded_client() const { return config_.recorded_client; }
  progress::EventLoop* loop() const { return loop_; }

 private:
  Connection(const Config& config, progress::EventLoop* loop,
             base::UniqueFd socket, std::shared_ptr<Events> events);
  ~Connection() override = default;

  void Ref() override { refs_.fetch_add(1, std::memory_order_relaxed); }
  void Unref() override;
  std::shared_ptr<Connection> Share();
  void FinishAndUnlock(Entry entry) ABSL_UNLOCK_FUNCTION(mu_);
  void StartTimer(LoopTimer* timer, absl::Duration delay,
                  void (Connection::*expired)())
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The socket.
  void OnSocket(uint32_t events);
  void ReadSocket() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PumpSocket() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SyncWatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnSocketBroken(const absl::Status& cause)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndSocket() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndWhenWritten() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Time limits.
  void OnHelloTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SyncSettleTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnSettleTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ObserveKeepalive() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartKeepaliveTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnKeepaliveTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SyncHeartbeat() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartHeartbeatTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnHeartbeatTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnRetryTimer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // connection_paths.cc
  bool PollPath() override;
  bool MayGiveUpPath() const override;
  void GiveUpPath(const absl::Status& why) override;
  void SchedulePolling() override;
  void PollUntilEmpty();
  void SyncPath() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnWakeup(const std::shared_ptr<fabric::Endpoint>& path);
  paths::SidePaths::Done OnSidePath() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddSidePath(uint32_t epoch, const std::string& fabric,
                   absl::StatusOr<std::shared_ptr<fabric::Endpoint>> path);
  void LogPath(const session::PathDescription& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MayAccept() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AcceptOpened() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  std::shared_ptr<metrics::Source> Keep() override;
  bool Describe(metrics::ConnectionInfo* info) override;
  void Collect(metrics::Snapshot* snapshot) override;

  void OnStreamOpened(uint32_t stream) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnGoaway(uint32_t last_stream, const absl::Status& status) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status OnEntry(uint32_t number, absl::string_view entry) override;
  void OnPing() override {}
  void OnPong(uint64_t) override {}
  void OnConnectWanted(const std::string& fabric, const std::string& offer,
                       const std::string& token) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnListenWanted() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnPathChosen(const session::PathDescription& path) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnClosed(const absl::Status& cause) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Config config_;
  progress::EventLoop* const loop_;
  std::atomic<int> refs_{1};

  base::Mutex mu_;
  std::shared_ptr<Events> events_ ABSL_GUARDED_BY(mu_);
  Socket socket_ ABSL_GUARDED_BY(mu_);
  paths::SidePaths side_paths_ ABSL_GUARDED_BY(mu_);
  fabric::tcp::Endpoint* const lifeline_;  // owned by session_
  std::unique_ptr<session::Session> session_ ABSL_GUARDED_BY(mu_);
  connection::PathPoller poller_;
  std::shared_ptr<fabric::Endpoint> watched_path_ ABSL_GUARDED_BY(mu_);
  std::vector<progress::EventLoop::Id> path_watches_ ABSL_GUARDED_BY(mu_);
  progress::EventLoop::Id watch_ ABSL_GUARDED_BY(mu_) = 0;
  uint32_t watched_events_ ABSL_GUARDED_BY(mu_) = 0;
  bool socket_ended_ ABSL_GUARDED_BY(mu_) = false;

  LoopTimer hello_timer_ ABSL_GUARDED_BY(mu_);
  LoopTimer settle_timer_ ABSL_GUARDED_BY(mu_);
  uint32_t settle_epoch_ ABSL_GUARDED_BY(mu_) = 0;
  LoopTimer keepalive_timer_ ABSL_GUARDED_BY(mu_);
  LoopTimer heartbeat_timer_ ABSL_GUARDED_BY(mu_);
  LoopTimer retry_timer_ ABSL_GUARDED_BY(mu_);
  LoopTimer linger_timer_ ABSL_GUARDED_BY(mu_);
  connection::Keepalive keepalive_ ABSL_GUARDED_BY(mu_);
  connection::Heartbeat heartbeat_ ABSL_GUARDED_BY(mu_);
  uint64_t inputs_seen_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t frames_seen_ ABSL_GUARDED_BY(mu_) = 0;
  connection::PathBackoff backoff_ ABSL_GUARDED_BY(mu_);
  base::LimitedLog log_ ABSL_GUARDED_BY(mu_);
  std::string path_logged_ ABSL_GUARDED_BY(mu_);

  bool settled_ ABSL_GUARDED_BY(mu_) = false;
  uint32_t next_stream_ ABSL_GUARDED_BY(mu_) = 1;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<uint32_t> opened_ ABSL_GUARDED_BY(mu_);  // yet to be accepted
  std::vector<std::function<void()>> later_ ABSL_GUARDED_BY(mu_);
  const metrics::Registration counted_;  // ends first
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_CONNECTION_H_
