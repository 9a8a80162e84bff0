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

// One training step of a worker is
//
//   auto pulled = worker->Pull(step);          // variables of version `step`
//   ... gradients from pulled->variables ...
//   auto pushed = worker->Push(step, gradients);
//   worker->Await(step + 1);                   // the barrier, optional
//   step = std::max(step + 1, pushed->version);
//
// Pull waits for its version as well; Await tells that wait apart. Each call
// goes to all servers side by side and returns when the last has answered or
// its time limit is over. The first error wins and names the server.
//
// Every server has a barrier of its own, so a worker that dies between two
// servers may count for one variable of a step and not for another.
//
// Thread safety: none, but for the thread of heartbeats that it owns.
class Worker {
 public:
  struct Options {
    // In the same order in every worker. Made with tensor::UnlimitedMessages.
    std::vector<std::shared_ptr<grpc::Channel>> servers;
    std::vector<VariableSpec> variables;  // the same set in every worker
    uint32_t rank = 0;                    // 0 is the chief
    // A run of this worker; 0 draws one.
    uint64_t incarnation = 0;
    absl::Duration join_timeout = absl::Seconds(60);
    // One Push, or one Pull of a version that is there.
    absl::Duration transfer_timeout = absl::Seconds(60);
    // Waiting for other workers: the barrier, and the first values.
    absl::Duration barrier_timeout = absl::Minutes(5);
  };

  // Becomes a member at every server, waiting for those not up yet, and stays
  // one by heartbeats. INVALID_ARGUMENT as Place(); UNAVAILABLE or
  // DEADLINE_EXCEEDED after join_timeout.
  static absl::StatusOr<std::unique_ptr<Worker>> Join(Options options);

  // Breaks off, as a death would, unless Leave() came first.
  ~Worker();

  // The first values, one for each variable; from rank 0, before the others'
  // first Pull can end. Where the servers have values already, those stay: a
  // chief that has been restarted just calls it again.
  absl::Status Initialize(const tensor::Bundle& values);

  using Pulled = Reader::Pulled;
  absl::StatusOr<Pulled> Pull(uint64_t min_version);

  struct Pushed {
    bool counted;      // at every server
    uint64_t version;  // the highest among the servers
  };
  // One gradient for each variable, by name. May be repeated with the same
  // arguments after an error: it counts once.
  absl::StatusOr<Pushed> Push(uint64_t step, const tensor::Bundle& gradients);

  // Until every server has applied `version` steps.
  absl::Status Await(uint64_t version);

  // An orderly good-bye: no barrier waits for this worker any more, and nobody
  // counts it as lost. The last call.
  void Leave();

  const std::vector<size_t>& placement() const { return placement_; }
  const std::vector<std::shared_ptr<grpc::Channel>>& channels() const {
    return options_.servers;
  }

 private:
  Worker(Options options, std::vector<size_t> placement);

  absl::Status JoinAll();
  // What goes to each server, in the order of the servers.
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
