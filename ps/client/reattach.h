// Continues a worker's training after servers were restarted.

#ifndef PENSTOCK_PS_CLIENT_REATTACH_H_
#define PENSTOCK_PS_CLIENT_REATTACH_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/client/worker.h"

namespace penstock::ps {

// Handles `error`, with which a call of a worker ended. `before` are the
// options() of that worker. If servers have lost the worker's run, all servers
// restore the newest checkpoint, also those that kept running; see Define().
// Returns a new worker of the same rank. Training continues at the new worker's
// clock(): acknowledged pushes of that step and later steps are lost. Servers
// refuse all pushes of the old worker, so no push is applied twice.
//
//   std::unique_ptr<Worker> worker = ...;
//   for (uint64_t step = worker->clock(); step < last;) {
//     absl::Status status = TrainStep(worker.get(), step);
//     if (status.ok()) {
//       ++step;
//       continue;
//     }
//     auto again = Reattach(worker->options(), status);
//     if (!again.ok()) return again.status();
//     worker = *std::move(again);
//     step = worker->clock();
//   }
//
// The worker may have missed up to 64 restarts. If another process has had its
// rank meanwhile, the worker takes the rank back.
//
// All workers of a training may call Reattach() at the same time, in any order,
// and any worker may be missing. The old worker may be destroyed before or
// after the call. Error feedback of compressed gradients starts again from
// zero.
//
// Blocks until all servers are up and have restored, for before.pull_timeout at
// most. Fails with:
//   `error` itself     no server has lost the run, or `error` is neither
//                      DATA_LOSS nor ABORTED, so it has another cause
//   DATA_LOSS          this process cannot continue; the message names the
//                      remedy and the servers that it concerns
//   DEADLINE_EXCEEDED  a server did not come back, or did not restore in time
absl::StatusOr<std::unique_ptr<Worker>> Reattach(const Worker::Options& before,
                                                 const absl::Status& error);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_REATTACH_H_
