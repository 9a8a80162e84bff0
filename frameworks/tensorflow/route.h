// Sends calls to one peer: over the data plane if the peer has one, and
// otherwise by stock RPC.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_ROUTE_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_ROUTE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "frameworks/tensorflow/hello.h"
#include "tensorflow/core/distributed_runtime/call_options.h"
#include "tensorflow/core/distributed_runtime/worker_interface.h"
#include "tensorflow/core/framework/device_base.h"
#include "transport/base/mutex.h"
#include "transport/progress/spin_policy.h"
#include "transport/rpc/client.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace tensorflow {

//   state        event                       action               next
//   kUnknown     a call                      ask, by stock RPC    kAsking
//   kAsking      the peer has a data plane   connect, ping        kConnecting
//   kAsking      it has none                 stock RPCs *         kStock
//   kAsking      the RPC fails               its call by stock    kUnknown
//                                            RPC
//   kAsking      its call is cancelled       -                    kUnknown
//   kConnecting  pong                        make the calls       kConnected
//   kConnecting  no connection               stock RPCs *         kStock
//   kConnected   connection lost             -                    kUnknown
//   kStock       some time later             -                    kUnknown
//
//   * With PENSTOCK_POLICY=require the calls fail instead: with UNAVAILABLE if
//     the peer cannot be reached now, and otherwise with FAILED_PRECONDITION.
//
// In kUnknown, a new call asks the peer again. A restarted peer with the same
// address is asked again, because the old connection is lost. Thread-safe.
class Route : public std::enable_shared_from_this<Route> {
 public:
  struct Options {
    std::string target;  // "host:port" of the peer's gRPC
    Settings settings;
    progress::PollingMode polling = progress::PollingMode::kAdaptive;
    ::tensorflow::DeviceBase* cpu = nullptr;  // of this process
  };

  // A flag that is set when a call is cancelled. Set even if the cancellation
  // comes before the call is in a list.
  using Cancelled = std::shared_ptr<std::atomic<bool>>;

  // One call. Ends when `stock` or `answered` is called: one of them, once.
  // `worker` and `options` must live until the end.
  struct Call {
    ::tensorflow::WorkerInterface* worker = nullptr;  // by stock RPC
    ::tensorflow::CallOptions* options = nullptr;     // may be null
    rpc::Request request;
    // Makes the call by stock RPC, because the peer has no data plane. May run
    // within Start(). The call may be cancelled before the RPC registers for
    // cancellation: check the flag after starting the RPC.
    std::function<void(const Cancelled&)> stock;
    // Receives the answer. Never runs within Start() or within a cancellation.
    std::function<void(absl::StatusOr<rpc::Response>)> answered;
  };

  explicit Route(const Options& options) : options_(options) {}

  void Start(Call call);
  // Makes the peer check its connection, so that it notices released memory.
  void Nudge();

  // Returns true if the connection was lost and has not been replaced.
  bool is_lost() const;

  // The state of the route, for people.
  struct Description {
    std::string target;
    std::string path;  // "shm", "tcp", "stock gRPC", or empty if unknown
    std::string detail;
    std::string reason;  // the reason for not using a better path
    uint64_t calls = 0;  // over the data plane
    uint64_t stock_calls = 0;
    session::Counters counters;
  };
  Description Describe() const;

 private:
  enum class State { kUnknown, kAsking, kConnecting, kConnected, kStock };
  using Ticket = uint64_t;
  struct Sent {
    std::shared_ptr<rpc::Client> client;
    rpc::Client::CallId id = 0;  // 0 until the client has started the call
  };
  struct Pending {
    Ticket ticket = 0;
    Call call;
    Cancelled cancelled;
  };
  struct Asking;

  // The functions below are called without the lock, unless an annotation
  // requires it.
  void Advance();
  std::shared_ptr<Asking> BeginAsking() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Ask(const std::shared_ptr<Asking>& asking);
  void OnHello(const std::shared_ptr<Asking>& asking,
               const absl::Status& status);
  void AskAgain(const absl::Status& status, const Pending& asker);
  void Connect(const Hello& hello);
  void OnPong(const absl::Status& status);
  void OnLost(uint64_t connection);
  void BecomeStock(const absl::Status& why);
  void Cancel(Ticket ticket);
  void Send(const std::shared_ptr<rpc::Client>& client, Pending pending);
  void OnAnswered(Ticket ticket, const Call& call,
                  absl::StatusOr<rpc::Response> response);
  void UseStock(const Pending& pending, const absl::Status& why);
  void Refuse(const Call& call, const absl::Status& why);
  void AnswerCancelled(const Call& call);

  const Options options_;

  std::atomic<Ticket> next_ticket_{1};

  mutable base::Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kUnknown;
  std::list<Pending> waiting_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Asking> asking_ ABSL_GUARDED_BY(mu_);
  std::map<Ticket, Sent> sent_ ABSL_GUARDED_BY(mu_);  // over the data plane
  std::shared_ptr<rpc::Client> client_ ABSL_GUARDED_BY(mu_);
  // The number of the current connection. Each new connection has a higher
  // number.
  uint64_t connection_ ABSL_GUARDED_BY(mu_) = 0;
  bool lost_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status stock_why_ ABSL_GUARDED_BY(mu_);
  absl::Time stock_until_ ABSL_GUARDED_BY(mu_);
  uint64_t calls_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t stock_calls_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_ROUTE_H_
