// The streams of heartbeats by which a server notices that a worker is lost.

#ifndef PENSTOCK_PS_SERVICE_ATTEND_H_
#define PENSTOCK_PS_SERVICE_ATTEND_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "grpcpp/support/server_callback.h"
#include "ps/server/calls.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

// The newest stream of each worker at each shard. A worker is lost only when
// its newest stream ends. When a worker reconnects, the end of its old stream
// does not count. Thread-safe.
class Attendance {
 public:
  // A shard; nullopt means the server's own shard.
  using Shard = absl::optional<uint32_t>;

  void Begin(const Shard& shard, const WorkerId& worker, const void* stream)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Ends a stream. Returns true if the stream was the newest one of the worker
  // at that shard.
  bool End(const Shard& shard, const WorkerId& worker, const void* stream)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Key = std::tuple<Shard, uint32_t, uint64_t>;  // rank, incarnation

  absl::Mutex mu_;
  std::map<Key, const void*> streams_ ABSL_GUARDED_BY(mu_);
};

// A function that finds the server of a heartbeat. If shards are replicated,
// the result may differ from heartbeat to heartbeat.
using FindServer = std::function<absl::StatusOr<std::shared_ptr<Calls>>()>;

// Serves one Attend() call. Ends the call immediately if `allowed` is an error.
// The reactor deletes itself. `attendance` must outlive the reactor.
grpc::ServerReadReactor<v1::Heartbeat>* ServeAttend(
    FindServer find, const Attendance::Shard& shard, Attendance* attendance,
    const absl::Status& allowed);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_ATTEND_H_
