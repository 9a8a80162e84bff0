// A worker's view of all parameter servers.

#ifndef PENSTOCK_PS_CLIENT_H_
#define PENSTOCK_PS_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "ps/fanout.h"
#include "ps/heartbeat.h"
#include "ps/placement.h"
#include "ps/ps.pb.h"
#include "ps/reader.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// Takes part in a training run as one worker. One step is
//
//   auto pulled = worker->Pull(step);          // variables of version `step`
//   ... gradients from pulled->variables ...
//   auto pushed = worker->Push(step, gradients);
//   worker->Await(step + 1);                   // the barrier, optional
//   step = std::max(step + 1, pushed->version);
//
// Pull() waits for its version too, so Await() is needed only to measure that
// wait by itself.
//
// Each call goes to all servers side by side. It blocks until the last one has
// answered or its time limit is over. The first error wins and names the
// server.
//
// Each server has a barrier of its own. If a worker dies between its pushes to
// two servers, its gradients count for the variables of one and not of the
// other.
//
// Not thread-safe. Owns one thread, which sends heartbeats.
class Worker {
 public:
  struct Options {
    // One channel to each server, in the same order in every worker. Make them
    // with tensor::UnlimitedMessages().
    std::vector<std::shared_ptr<grpc::Channel>> servers;
    std::vector<VariableSpec> variables;  // the same set in every worker
    uint32_t rank = 0;                    // 0 is the chief
    // Tells this run of the rank from earlier ones. If it is 0, Join() draws
    // one at random.
    uint64_t incarnation = 0;
    absl::Duration join_timeout = absl::Seconds(60);
    // Limits a Push(), and a Pull() of a version that the servers have.
    absl::Duration transfer_timeout = absl::Seconds(60);
    // Limits the wait for other workers: for their pushes, and for the chief's
    // first values.
    absl::Duration barrier_timeout = absl::Minutes(5);
  };

  // Becomes a member at every server, and stays one by heartbeats. Waits for
  // servers that are not up yet. Returns INVALID_ARGUMENT as Place() does, what
  // AwaitServers() does for join_timeout, and UNAVAILABLE if a server is
  // shutting down or its connection breaks.
  static absl::StatusOr<std::unique_ptr<Worker>> Join(Options options);

  // Breaks off the heartbeats, so that the servers count the worker as lost,
  // unless Leave() was called.
  ~Worker();

  // Sets the first values, one for each variable. Only rank 0 may call it, and
  // the first Pull() of every worker waits for it. Servers that have values
  // already keep them, so a chief that was restarted may simply call it again.
  // Returns INVALID_ARGUMENT for a name that is not in Options::variables.
  absl::Status Initialize(const tensor::Bundle& values);

  using Pulled = Reader::Pulled;
  // Returns the variables once every server has applied `min_version` steps.
  // See Reader::Pull(). Waits for at most transfer_timeout + barrier_timeout.
  absl::StatusOr<Pulled> Pull(uint64_t min_version);

  struct Pushed {
    bool counted;      // at every server
    uint64_t version;  // the highest among the servers
  };
  // Sends the gradients of `step`, one for each variable, by name. After an
  // error it may be repeated with the same arguments: it counts once. Returns
  // INVALID_ARGUMENT for a name that is not in Options::variables, and a
  // server's refusal as Server::Push() describes it.
  absl::StatusOr<Pushed> Push(uint64_t step, const tensor::Bundle& gradients);

  // Blocks until every server has applied `version` steps. Returns
  // DEADLINE_EXCEEDED after barrier_timeout.
  absl::Status Await(uint64_t version);

  // Tells the servers that this worker leaves. Barriers stop waiting for it,
  // and no server counts it as lost. Blocks as HeartbeatSender::SayGoodBye()
  // does. Call nothing but the destructor afterwards.
  void Leave();

  // Returns the server of each variable, by index, as Place() chose them.
  const std::vector<size_t>& placement() const { return placement_; }
  const std::vector<std::shared_ptr<grpc::Channel>>& channels() const {
    return options_.servers;
  }

 private:
  Worker(Options options, std::vector<size_t> placement);

  absl::Status JoinAll();
  // Returns the part of `bundle` for each server, in the order of the servers.
  absl::StatusOr<std::vector<tensor::Bundle>> Split(
      const tensor::Bundle& bundle) const;
  v1::WorkerId id() const;

  const Options options_;
  const std::vector<size_t> placement_;  // server of each variable
  Fanout calls_;
  Reader reader_;
  std::unique_ptr<HeartbeatSender> heartbeats_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_H_
