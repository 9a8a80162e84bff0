// The route to the server that leads a shard.

#ifndef PENSTOCK_PS_CLIENT_ROUTE_H_
#define PENSTOCK_PS_CLIENT_ROUTE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"

namespace penstock::ps {

// The channel to the primary of one shard, which changes when another server
// becomes the primary. Thread-safe.
class Route {
 public:
  // Starts with the shard's own server, to which calls need no shard number.
  Route(uint32_t shard, std::shared_ptr<grpc::Channel> own);
  Route(const Route&) = delete;
  Route& operator=(const Route&) = delete;

  std::shared_ptr<grpc::Channel> channel() const ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the value of kShardKey for calls; empty before the first MoveTo().
  std::string shard() const ABSL_LOCKS_EXCLUDED(mu_);

  // Begins a call, before the call starts: puts the shard into the metadata,
  // and returns the channel. Cancels the call if the shard moves before End(),
  // which must come before the end of `call`.
  std::shared_ptr<grpc::Channel> Begin(grpc::ClientContext* call)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Ends a call. Returns true if the call was cancelled because the shard has
  // moved. Call this function once for each Begin().
  bool End(grpc::ClientContext* call) ABSL_LOCKS_EXCLUDED(mu_);

  // Records the result of a call: false if no primary has answered.
  void NoteAnswer(bool is_answered) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns true from an unanswered call on, until a call is answered or the
  // shard moves. Another server may lead the shard by then.
  bool is_in_doubt() const ABSL_LOCKS_EXCLUDED(mu_);

  // Returns the number of times that the shard has moved.
  uint64_t moves() const ABSL_LOCKS_EXCLUDED(mu_);
  // Sends further calls to `primary`. Cancels the calls in progress if they go
  // to another server.
  void MoveTo(const std::shared_ptr<grpc::Channel>& primary)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  std::string ShardLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const uint32_t shard_;
  mutable absl::Mutex mu_;
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mu_);
  bool is_named_ ABSL_GUARDED_BY(mu_) = false;
  bool is_in_doubt_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t moves_ ABSL_GUARDED_BY(mu_) = 0;
  // The calls in progress. The value is true once a call was cancelled.
  absl::flat_hash_map<grpc::ClientContext*, bool> calls_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_ROUTE_H_
