// The streams by which workers show that they live.

#ifndef PENSTOCK_PS_SERVICE_ATTEND_H_
#define PENSTOCK_PS_SERVICE_ATTEND_H_

#include <cstdint>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/server_callback.h"
#include "ps/server/server.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

// Which stream speaks for a worker: its newest. A worker that has connected
// anew is not lost when the server learns that its old connection broke.
// Thread-safe.
class Attendance {
 public:
  void Begin(const WorkerId& worker, const void* stream)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns whether the stream spoke for the worker until now.
  bool End(const WorkerId& worker, const void* stream) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Key = std::pair<uint32_t, uint64_t>;  // rank, incarnation

  absl::Mutex mu_;
  std::map<Key, const void*> streams_ ABSL_GUARDED_BY(mu_);
};

// Serves one Attend() call, unless `allowed` is an error, which ends it. The
// reactor deletes itself; `server` and `attendance` outlive it.
grpc::ServerReadReactor<v1::Heartbeat>* ServeAttend(
    Server* server, Attendance* attendance, const absl::Status& allowed);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_ATTEND_H_
