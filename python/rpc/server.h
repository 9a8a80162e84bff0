// A server of transport/rpc for Python, and the calls that it receives.

#ifndef PENSTOCK_PYTHON_RPC_SERVER_H_
#define PENSTOCK_PYTHON_RPC_SERVER_H_

#include <pybind11/pybind11.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "python/rpc/deadlines.h"
#include "python/rpc/keepalive.h"
#include "transport/base/mutex.h"
#include "transport/rpc/server.h"

namespace penstock::python {

// A received call. At its deadline, the client gets DEADLINE_EXCEEDED, and the
// call is cancelled for its handler. Thread-safe. Call all functions with the
// GIL. Functions that copy or send release the GIL.
class ReceivedCall {
 public:
  ReceivedCall(std::shared_ptr<rpc::IncomingCall> call, Deadlines* deadlines);

  const std::string& method() const { return call_->request().method; }
  const std::string& peer() const { return call_->peer(); }
  pybind11::bytes metadata() const;
  // Returns the message. Call once. Afterwards the call holds no memory of the
  // message. With `as_view`, may return a memoryview; see ToObject().
  pybind11::object Message(bool as_view);
  // Returns the seconds until the client's deadline, or None without one.
  pybind11::object TimeRemaining() const;

  void Respond(const pybind11::bytes& metadata, const pybind11::bytes& message);
  // Returns true if the call was cancelled before the response: by the client,
  // by the loss of the client, or by the deadline. Sees the client's actions
  // only after the first call of Watch().
  bool is_cancelled() const { return watch_->cancelled.load(); }
  // Adds `number` to Reports once is_cancelled() becomes true, or nothing if
  // `number` is 0. Only the first call has an effect.
  void Watch(uint64_t number);

 private:
  struct Watching {
    void Cancel();
    // Adds the number to Reports, once.
    void Report();

    std::atomic<bool> cancelled{false};
    std::atomic<uint64_t> number{0};  // 0: none wanted, or added
  };

  static void Expire(rpc::IncomingCall* call, Watching* watch);

  const std::shared_ptr<rpc::IncomingCall> call_;
  const std::shared_ptr<Watching> watch_ = std::make_shared<Watching>();
  const Deadlines::Entry deadline_;
};

// The received calls that wait for a Python thread. Thread-safe. Needs no GIL.
//
// A thread that has handled a call lingers: it waits a short time for the next
// call. Other threads serve: they sleep, and handle calls for which no thread
// is lingering.
class CallQueue {
 public:
  // A call, a stream, or nothing.
  struct Incoming {
    std::shared_ptr<rpc::IncomingCall> call;
    std::shared_ptr<rpc::IncomingStream> stream;
  };

  void Add(Incoming call);
  // Waits for a call. Returns nothing when the queue is closed.
  Incoming Serve();
  // Waits for a call for a short time. Returns nothing if no call comes.
  Incoming Linger();
  // Returns up to `most` of the waiting calls. If more are left, reports again.
  // Does not wait.
  std::vector<Incoming> TakeSome(size_t most);
  // Adds `number` to Reports when a call comes to the empty queue. Neither
  // Serve() nor Linger() may be called afterwards.
  void Report(uint64_t number);
  // Drops all calls, and all calls that come later.
  void Close();

 private:
  bool HasWork();
  bool SleepUntil(absl::Time deadline);
  Incoming TakeLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  base::Mutex mu_;
  std::condition_variable_any serving_changed_;
  std::condition_variable_any lingering_changed_;
  std::deque<Incoming> calls_ ABSL_GUARDED_BY(mu_);
  std::atomic<size_t> count_{0};  // of calls_, readable without the lock
  size_t lingering_ ABSL_GUARDED_BY(mu_) = 0;
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t number_ ABSL_GUARDED_BY(mu_) = 0;  // 0: none wanted
};

// The port of the data plane of a gRPC server. Thread-safe.
class RpcServer {
 public:
  // Listens at the address, a numeric host and a port. Throws RuntimeError on
  // failure.
  RpcServer(const std::string& address, const pybind11::bytes& token,
            int64_t max_receive_bytes, const KeepaliveArguments& keepalive);

  int port() const { return port_; }
  // Return the next call, as CallQueue does, or None.
  pybind11::object Serve();
  pybind11::object Linger();
  // Functions for an event loop. They work like those of CallQueue.
  pybind11::list TakeSome(size_t most);
  void Report(uint64_t number) { queue_->Report(number); }
  // Closes the port and all connections.
  void Close();
  // Returns a list of (peer, fabric, detail, reason).
  pybind11::list Describe() const;

 private:
  pybind11::object Wrapped(CallQueue::Incoming call) const;

  const std::shared_ptr<CallQueue> queue_ = std::make_shared<CallQueue>();
  const std::shared_ptr<Deadlines> deadlines_ = std::make_shared<Deadlines>();
  int port_ = 0;
  mutable base::Mutex mu_;
  std::shared_ptr<rpc::Server> server_ ABSL_GUARDED_BY(mu_);  // null: closed
};

void BindServer(pybind11::module_& module);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_SERVER_H_
