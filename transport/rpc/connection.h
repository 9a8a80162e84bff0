// The front end's connection: a socket of its own, and the calls on it.

#ifndef PENSTOCK_TRANSPORT_RPC_CONNECTION_H_
#define PENSTOCK_TRANSPORT_RPC_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transport/base/unique_fd.h"
#include "transport/connection/connection.h"
#include "transport/progress/event_loop.h"
#include "transport/rpc/guarded.h"
#include "transport/rpc/head.h"
#include "transport/rpc/loop_executor.h"
#include "transport/rpc/socket.h"
#include "transport/session/session.h"

namespace penstock {
namespace rpc {

// Thread-safe: one mutex guards everything. Input and timers come on the thread
// of EventLoop::GetPolling(); output leaves on the thread that adds it.
//
// Reference-counted. Each possible caller holds a reference. All references end
// with the session, at the latest after Close().
class Connection final : public connection::Connection {
 public:
  struct Config : connection::Config {
    Config() { max_metadata_bytes = kMaxHeadBytes; }

    // A server's: of record::Recorder; 0: its calls are not recorded.
    uint64_t recorded_client = 0;
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

  // Takes over a socket on which both sides have greeted. `executor` runs its
  // tasks on `loop`.
  static std::shared_ptr<Connection> Create(
      const Config& config, progress::EventLoop* loop,
      std::shared_ptr<connection::Executor> executor, base::UniqueFd socket,
      std::shared_ptr<Events> events);
  // Begins the session. `received` came behind the greeting. Call it once.
  void Start(absl::string_view received);

  // Tells who took the lock. A caller may hold locks that callbacks take.
  enum class Entry { kCall, kInput };

  // Holds the lock. Sends what was added, and does what follows from it, when
  // it goes.
  class ABSL_SCOPED_LOCKABLE Section {
   public:
    explicit Section(Connection* connection, Entry entry = Entry::kCall)
        ABSL_EXCLUSIVE_LOCK_FUNCTION(connection->mu_)
        : connection_(connection), entry_(entry) {
      connection_->Lock();
    }
    ~Section() ABSL_UNLOCK_FUNCTION() { connection_->FinishAndUnlock(entry_); }

   private:
    LateOwners late_owners_;  // destroyed last, after unlocking
    Connection* const connection_;
    const Entry entry_;
  };

  // For calls, under the lock.
  //
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
  uint64_t recorded_client() const { return recorded_client_; }

 private:
  Connection(const Config& config, progress::EventLoop* loop,
             std::shared_ptr<connection::Executor> executor,
             std::unique_ptr<Socket> socket, std::shared_ptr<Events> events);
  ~Connection() override = default;

  void FinishAndUnlock(Entry entry) ABSL_UNLOCK_FUNCTION(mu_);
  void AcceptOpened() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The socket.
  void OnSocket(uint32_t events);
  void ReadSocket() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PumpSocket() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SyncWatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnSocketBroken(const absl::Status& cause)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Of connection::Connection.
  void Enter(absl::FunctionRef<void()> work) override;
  bool PollPath() override;
  void LeaveInput() override { SchedulePolling(); }
  void OnPathChanged(const std::shared_ptr<fabric::Endpoint>& path) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnSettled(const absl::Status& status) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnEnded(const absl::Status& cause) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndStream() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool HasCalls() const override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return calls_ > 0;
  }

  void OnStreamOpened(uint32_t stream) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnGoaway(uint32_t last_stream, const absl::Status& status) override
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status OnEntry(uint32_t number, absl::string_view entry) override;
  void OnPing() override {}
  void OnPong(uint64_t) override {}

  progress::EventLoop* const loop_;
  const uint64_t recorded_client_;
  Socket* const socket_ ABSL_PT_GUARDED_BY(mu_);  // the byte stream
  std::shared_ptr<Events> events_ ABSL_GUARDED_BY(mu_);
  std::vector<progress::EventLoop::Id> path_watches_ ABSL_GUARDED_BY(mu_);
  progress::EventLoop::Id watch_ ABSL_GUARDED_BY(mu_) = 0;
  uint32_t watched_events_ ABSL_GUARDED_BY(mu_) = 0;
  uint32_t next_stream_ ABSL_GUARDED_BY(mu_) = 1;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<uint32_t> opened_ ABSL_GUARDED_BY(mu_);  // yet to be accepted
  std::vector<std::function<void()>> later_ ABSL_GUARDED_BY(mu_);
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_CONNECTION_H_
