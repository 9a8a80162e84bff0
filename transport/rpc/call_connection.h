// The connection of the rpc front end: a socket, and the calls on it.

#ifndef PENSTOCK_TRANSPORT_RPC_CALL_CONNECTION_H_
#define PENSTOCK_TRANSPORT_RPC_CALL_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "transport/base/unique_fd.h"
#include "transport/connection/connection.h"
#include "transport/connection/timer.h"
#include "transport/fabric/tcp/socket.h"
#include "transport/progress/event_loop.h"
#include "transport/rpc/callbacks.h"
#include "transport/rpc/guarded.h"
#include "transport/rpc/head.h"
#include "transport/rpc/loop_executor.h"
#include "transport/session/departure.h"
#include "transport/session/session.h"

namespace penstock {
namespace rpc {

// A connection of a client or a server. Thread-safe: one mutex guards all
// members. Input and timers run on the thread of EventLoop::GetPolling().
// Output is sent on the thread that adds the output.
//
// Reference-counted. Each object that may call the connection holds a
// reference. All references are released when the session ends, at the latest
// after Close().
class CallConnection final : public connection::Connection {
 public:
  struct Config : connection::Config {
    Config() { max_metadata_bytes = kMaxHeadBytes; }

    // On a server, the client's id in record::Recorder. 0 means that calls are
    // not recorded.
    uint64_t recorded_client = 0;
    CallbackThread callbacks = CallbackThread::kLoop;
    int64_t max_send_bytes = -1;  // per message; negative means no limit
  };

  // A listener to the events of `connection`. Called under the connection's
  // lock, and may use the session. The connection releases the listener when
  // the session has ended.
  class Events {
   public:
    virtual ~Events() = default;
    // Called once, when a path that satisfies the settings carries the session.
    virtual void OnSettled(CallConnection* connection) = 0;
    // Called once on a client, when the server takes no new calls.
    virtual void OnLeaving(CallConnection* connection,
                           const absl::Status& why) = 0;
    // Called on a server when the client has opened a call. Must attach the
    // stream.
    virtual void OnStream(CallConnection* connection, uint32_t stream) = 0;
    // Reports the end of the connection, as the last event, after the events of
    // the streams.
    virtual void OnClosed(CallConnection* connection,
                          const absl::Status& why) = 0;
  };

  // Returns a connection for a socket on which both sides have sent their
  // greeting. `executor` runs its tasks on `loop`.
  static std::shared_ptr<CallConnection> Create(
      const Config& config, progress::EventLoop* loop,
      std::shared_ptr<connection::Executor> executor, base::UniqueFd socket,
      std::shared_ptr<Events> events);
  // Starts the session. `received` are the bytes after the greeting. Call once.
  void Start(absl::string_view received);

  // The reason for taking the lock. No callback runs on the thread of a kCall
  // entry, because that thread may hold locks that the callback takes.
  enum class Entry { kCall, kInput };

  // A scope that holds the lock. The destructor sends the added output, updates
  // the connection's state, and unlocks.
  class ABSL_SCOPED_LOCKABLE Section {
   public:
    explicit Section(CallConnection* connection, Entry entry = Entry::kCall)
        ABSL_EXCLUSIVE_LOCK_FUNCTION(connection->mu_)
        : connection_(connection), entry_(entry) {
      connection_->Lock();
    }
    ~Section() ABSL_UNLOCK_FUNCTION() { connection_->FinishAndUnlock(entry_); }

   private:
    LateOwners late_owners_;  // destroyed last, after unlocking
    CallConnection* const connection_;
    const Entry entry_;
  };

  // The functions below are for calls. Call them under the lock.
  //
  // Returns the id of a new stream. Each id is used once. Ends the session if
  // no ids are left.
  uint32_t NextStream();
  // Schedules `callback` on a thread of Config::callbacks, without locks,
  // outside any call of the application. Callbacks run one after another, in
  // the order of the RunLater() calls.
  void RunLater(std::function<void()> callback) {
    mu_.AssertHeld();
    callbacks_.Add(std::move(callback));
  }
  // Adds to the number of open calls, which keepalive uses.
  void AddCalls(int count) {
    mu_.AssertHeld();
    calls_ += count;
  }

  // Returns true if the message exceeds Config::max_receive_bytes. The session
  // refuses only announced messages above this limit.
  bool IsTooLarge(const memory::Payload& message) {
    const int64_t limit = session()->config().max_receive_bytes;
    return limit >= 0 && message.size() > static_cast<uint64_t>(limit);
  }

  // Returns the error of a received message above Config::max_receive_bytes, in
  // gRPC's words.
  absl::Status TooLarge(uint64_t bytes);
  // Returns RESOURCE_EXHAUSTED for a message above Config::max_send_bytes.
  absl::Status CheckSend(const memory::Payload& message) const;

  // Returns a shared reference. Drop the reference without the lock.
  std::shared_ptr<CallConnection> ShareSelf() {
    return ShareAs<CallConnection>();
  }

  // Refuses new calls of a server, tells the client to open no more, and ends
  // the session after the last open call. `why` is the reason.
  void Drain(const absl::Status& why);
  // Ends the session. All calls fail with UNAVAILABLE and the reason `why`.
  void Close(const absl::Status& why);
  session::PathDescription DescribePath();
  session::Counters counters();
  uint64_t recorded_client() const { return recorded_client_; }

 private:
  CallConnection(const Config& config, progress::EventLoop* loop,
                 std::shared_ptr<connection::Executor> executor,
                 std::unique_ptr<fabric::tcp::Socket> socket,
                 std::shared_ptr<Events> events);
  ~CallConnection() override = default;

  void FinishAndUnlock(Entry entry) ABSL_UNLOCK_FUNCTION(mu_);
  void AcceptOpened() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Refuses a stream that the client opened after this side had announced the
  // end of the session.
  void RefuseStream(uint32_t stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CloseWhenDrained() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Handlers of the socket's events.
  void OnSocket(uint32_t events);
  void ReadSocket() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PumpSocket() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SyncWatch() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnSocketBroken(const absl::Status& cause)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Overrides of connection::Connection.
  void Enter(absl::FunctionRef<void()> work) override;
  bool PollPath() override;
  void LeaveInput() override { poller_.Schedule(); }
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
  void OnPong(uint64_t cookie) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    departure_.OnPong(cookie);
  }

  progress::EventLoop* const loop_;
  const uint64_t recorded_client_;
  const int64_t max_send_bytes_;
  fabric::tcp::Socket* const socket_
      ABSL_PT_GUARDED_BY(mu_);  // the byte stream
  std::shared_ptr<Events> events_ ABSL_GUARDED_BY(mu_);
  std::vector<progress::EventLoop::Id> path_watches_ ABSL_GUARDED_BY(mu_);
  progress::EventLoop::Id watch_ ABSL_GUARDED_BY(mu_) = 0;
  uint32_t watched_events_ ABSL_GUARDED_BY(mu_) = 0;
  uint32_t next_stream_ ABSL_GUARDED_BY(mu_) = 1;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<uint32_t> opened_ ABSL_GUARDED_BY(mu_);  // not accepted yet
  session::Departure departure_ ABSL_GUARDED_BY(mu_);  // of a server
  connection::Timer departure_timer_ ABSL_GUARDED_BY(mu_);
  bool is_left_ ABSL_GUARDED_BY(mu_) = false;  // by this client's server
  Callbacks callbacks_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_CALL_CONNECTION_H_
