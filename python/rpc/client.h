// A client of transport/rpc for Python, and its calls.

#ifndef PENSTOCK_PYTHON_RPC_CLIENT_H_
#define PENSTOCK_PYTHON_RPC_CLIENT_H_

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "python/rpc/event.h"
#include "python/rpc/keepalive.h"
#include "python/rpc/stream.h"
#include "transport/base/mutex.h"
#include "transport/progress/event_loop.h"
#include "transport/rpc/client.h"

namespace penstock::python {

// The state of a call, which the call's callback shares. Thread-safe.
class CallState {
 public:
  // Ends the call. Returns false if the call has ended before. Callable on any
  // thread.
  bool End(absl::StatusOr<rpc::Response> result);
  // Calls `expire` after `timeout`, unless the call ends before.
  void ExpireAfter(absl::Duration timeout, std::function<void()> expire);
  // Adds `number` to Reports when the call has ended, or immediately if it
  // already has.
  void Report(uint64_t number);
  // Adds `number` to Reports if the server has declined the call, unless
  // Report() was called.
  void ReportDecline(uint64_t number);
  Event& ended() { return ended_; }
  // Returns the result. Call once, after the end of the call.
  absl::StatusOr<rpc::Response> TakeResult();

 private:
  Event ended_;
  absl::StatusOr<rpc::Response> result_;
  base::Mutex mu_;
  bool has_ended_ ABSL_GUARDED_BY(mu_) = false;
  bool IsDeclinedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  uint64_t number_ ABSL_GUARDED_BY(mu_) = 0;          // 0: none wanted
  uint64_t decline_number_ ABSL_GUARDED_BY(mu_) = 0;  // likewise
  progress::EventLoop::Id timer_ ABSL_GUARDED_BY(mu_) = 0;
};

// A client of the data plane to one server. Thread-safe. Call all functions
// with the GIL. Functions that wait or copy release the GIL.
class RpcClient : public std::enable_shared_from_this<RpcClient> {
 public:
  // Starts to connect. Throws RuntimeError if the target is malformed.
  static std::shared_ptr<RpcClient> Connect(
      const std::string& target, const pybind11::bytes& token,
      int64_t max_receive_bytes, const KeepaliveArguments& keepalive);

  // Returns true once the server has answered this object's first call.
  bool is_ready() const { return ready_->load(std::memory_order_acquire); }
  bool is_over() const;
  // Closes the connection. Calls end with CANCELLED.
  void Close();
  // Returns (fabric, detail, reason), or None without a connection.
  pybind11::object Describe() const;

  class Call;
  // Starts a call, and waits for the result. A negative timeout means no
  // timeout. After Ctrl-C, cancels the call and throws KeyboardInterrupt.
  pybind11::tuple CallAndWait(const std::string& method,
                              const pybind11::bytes& metadata,
                              const pybind11::bytes& message, double timeout,
                              bool as_view);
  // Opens a stream. Returns null if the client is closed.
  std::shared_ptr<SentStream> Open(const std::string& method,
                                   const pybind11::bytes& metadata,
                                   double timeout, bool has_unary_response);
  // Starts a call, which ends at its timeout.
  std::shared_ptr<Call> Start(const std::string& method,
                              const pybind11::bytes& metadata,
                              const pybind11::bytes& message, double timeout);

 private:
  struct Started {
    std::shared_ptr<CallState> state;
    rpc::Client::CallId id = 0;
  };

  explicit RpcClient(std::unique_ptr<rpc::Client> client)
      : client_(std::move(client)) {}

  std::shared_ptr<rpc::Client> client() const;
  Started Send(const std::string& method, absl::string_view metadata,
               absl::string_view message, absl::Duration timeout);
  // Ends a call with `why` on this side, and cancels the call at the server.
  // Returns false if the call had already ended.
  bool End(const Started& started, const absl::Status& why);
  void SayHello();

  mutable base::Mutex mu_;
  std::shared_ptr<rpc::Client> client_ ABSL_GUARDED_BY(mu_);  // null if closed
  const std::shared_ptr<std::atomic<bool>> ready_ =
      std::make_shared<std::atomic<bool>>(false);
  const std::shared_ptr<std::atomic<bool>> closed_ =
      std::make_shared<std::atomic<bool>>(false);
};

// A call that continues while the program does other things.
class RpcClient::Call {
 public:
  Call(std::shared_ptr<RpcClient> client, Started started)
      : client_(std::move(client)), started_(std::move(started)) {}

  bool is_done() const { return started_.state->ended().is_set(); }
  // Waits up to `seconds`; negative means no limit. Returns is_done().
  bool Wait(double seconds);
  // Ends the call with a status code and a text. Returns false if the call has
  // ended before.
  bool End(int code, const std::string& message);
  void Report(uint64_t number) { started_.state->Report(number); }
  void ReportDecline(uint64_t number) { started_.state->ReportDecline(number); }
  // Returns (code, message, metadata, payload). Call once, after the end.
  // Afterwards, the call holds no memory of the message. The payload is bytes,
  // or with `as_view` perhaps a memoryview; see ToObject().
  pybind11::tuple Outcome(bool as_view) const;

 private:
  const std::shared_ptr<RpcClient> client_;
  const Started started_;
};

void BindClient(pybind11::module_& module);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_CLIENT_H_
