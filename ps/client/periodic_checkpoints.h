// Takes checkpoints at intervals.

#ifndef PENSTOCK_PS_CLIENT_PERIODIC_CHECKPOINTS_H_
#define PENSTOCK_PS_CLIENT_PERIODIC_CHECKPOINTS_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "ps/client/checkpoint.h"
#include "ps/client/repeated_call.h"
#include "ps/client/router.h"
#include "ps/client/training_connection.h"

namespace penstock::ps {

// A thread that takes a checkpoint each interval; server 0 has such a thread.
// Skips an interval without a new step. After an error, retries at the next
// interval. The destructor blocks until a running checkpoint has ended, so
// drain the servers first. If another server is gone, the destructor blocks for
// Options::reach.
//
// Thread-safe.
class PeriodicCheckpoints {
 public:
  struct Options {
    absl::Duration interval = absl::Minutes(10);
    // Limits the wait for servers that do not answer.
    absl::Duration reach = absl::Seconds(10);
    CheckpointOptions checkpoint;
    // A function that returns the address of each server, in order. Returns
    // none while there is no model, or if another process takes the
    // checkpoints.
    std::function<std::vector<std::string>()> servers;
    // Makes a channel to a server. The channel is used for all checkpoints.
    Router::Connect connect;
    // A function that receives the error of a checkpoint, on the object's
    // thread. Nothing else logs the error.
    std::function<void(const absl::Status&)> failed;
    // A function that receives a line about each new checkpoint, on the
    // object's thread.
    std::function<void(const std::string&)> log;
  };

  explicit PeriodicCheckpoints(Options options);

 private:
  void TakeOne();
  absl::StatusOr<CheckpointResult> TryOne(
      TrainingConnection::Channels channels) const;
  // Returns the channels to the servers. Drops the channels to others.
  TrainingConnection::Channels ChannelsTo(
      const std::vector<std::string>& servers);

  const Options options_;
  // By addresses. Used by the thread of `calls_` only.
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;
  RepeatedCall calls_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_PERIODIC_CHECKPOINTS_H_
