// Calls etcd.

#ifndef PENSTOCK_PS_ETCD_CLIENT_H_
#define PENSTOCK_PS_ETCD_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/security/credentials.h"
#include "ps/etcd/cancel.h"
#include "ps/etcd/history.h"
#include "third_party/etcd/rpc.pb.h"

namespace penstock::ps::etcd {

// A client of one etcd with one or more endpoints. Uses stock gRPC channels.
//
// A call goes to one endpoint. If that endpoint is unreachable or slow, fails,
// or answers as another etcd, the call goes to the next endpoint, until
// `timeout` is over. A write whose answer was lost is therefore repeated: make
// each write conditional, so that the repetition changes nothing.
//
// Each answer is checked by History. Errors name the endpoint and the remedy:
//
//   UNAVAILABLE          no endpoint has answered in time
//   DATA_LOSS            History::Check()'s error
//   UNAUTHENTICATED      etcd refuses the user or the password
//   PERMISSION_DENIED    etcd lets the user not use the key
//   CANCELLED            `cancel` was cancelled
//   others               etcd's error, after all endpoints were asked
//
// Blocking and thread-safe.
class Client {
 public:
  struct Options {
    std::vector<std::string> endpoints;  // HOST:PORT, at least one
    // The credentials. Null means no TLS.
    std::shared_ptr<grpc::ChannelCredentials> security;
    std::string user;  // empty: etcd's authentication is not used
    std::string password;
    // Limits the wait for one endpoint, before the next one is asked.
    absl::Duration patience = absl::Seconds(2);
  };

  explicit Client(Options options);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Reads keys. The answer contains every write that ended before the call.
  absl::StatusOr<etcdserverpb::RangeResponse> Range(
      const etcdserverpb::RangeRequest& request, absl::Duration timeout,
      Cancel* cancel = nullptr);
  // Reads all keys that begin with `prefix`.
  absl::StatusOr<etcdserverpb::RangeResponse> ReadPrefix(
      const std::string& prefix, absl::Duration timeout,
      Cancel* cancel = nullptr);
  absl::StatusOr<etcdserverpb::TxnResponse> Txn(
      const etcdserverpb::TxnRequest& request, absl::Duration timeout,
      Cancel* cancel = nullptr);

  // Returns the id of a new lease. etcd deletes the lease's keys unless
  // KeepLeaseAlive() is called in time. Rounds the time up to whole seconds, at
  // least 1. etcd may grant a longer time.
  absl::StatusOr<int64_t> GrantLease(absl::Duration time_to_live,
                                     absl::Duration timeout,
                                     Cancel* cancel = nullptr);
  // Renews the lease, and returns its full time. Returns NOT_FOUND if the lease
  // has ended.
  absl::StatusOr<absl::Duration> KeepLeaseAlive(int64_t lease,
                                                absl::Duration timeout,
                                                Cancel* cancel = nullptr);
  // Ends a lease and deletes its keys. Returns OK if it has ended already.
  absl::Status RevokeLease(int64_t lease, absl::Duration timeout,
                           Cancel* cancel = nullptr);

  // The following functions serve streams. The caller reads its stream itself.

  struct Endpoint {
    size_t index;
    std::string name;
    std::shared_ptr<grpc::Channel> channel;
  };
  // Returns the endpoint that answered last.
  Endpoint endpoint() const ABSL_LOCKS_EXCLUDED(mu_);
  // Selects the next endpoint, because endpoint `index` has failed. Does
  // nothing if another thread did so already.
  void MoveOn(size_t index) ABSL_LOCKS_EXCLUDED(mu_);
  // Adds the user's token and the options to a stream's context. Requests a
  // token from etcd if there is none. Returns the error of Authenticate().
  absl::Status Prepare(const Endpoint& endpoint, grpc::ClientContext* context,
                       Cancel* cancel) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true if the status means that the token has expired. The next
  // Prepare() then asks for another token.
  bool ForgetToken(const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

  History* history() { return &history_; }
  absl::Duration patience() const { return options_.patience; }
  // Returns the names of all endpoints, for messages.
  std::string names() const;

 private:
  // A call of one endpoint.
  using Attempt = std::function<grpc::Status(
      const std::shared_ptr<grpc::Channel>&, grpc::ClientContext*)>;
  // One call of this class.
  struct Operation {
    absl::string_view name;
    Attempt attempt;
    // Returns the header of the last answer.
    std::function<const etcdserverpb::ResponseHeader&()> header;
    bool is_linearizable = true;
    // Returns true if the operation wrote something, so that the answer has a
    // new revision. Empty for operations that never write.
    std::function<bool()> has_written;
  };

  absl::Status Run(const Operation& operation, absl::Duration timeout,
                   Cancel* cancel);
  absl::Status TryOnce(const Operation& operation, const Endpoint& endpoint,
                       absl::Duration limit, Cancel* cancel);
  absl::StatusOr<std::string> Token(const Endpoint& endpoint, Cancel* cancel)
      ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;  // by endpoint
  History history_;
  mutable absl::Mutex mu_;
  size_t current_ ABSL_GUARDED_BY(mu_) = 0;  // the endpoint that is asked first
  std::string token_ ABSL_GUARDED_BY(mu_);
};

// Returns the end of the range of all keys that begin with `prefix`.
std::string EndOfPrefix(std::string prefix);

}  // namespace penstock::ps::etcd

#endif  // PENSTOCK_PS_ETCD_CLIENT_H_
