// Measures for how long a training does not answer.

#ifndef PENSTOCK_PS_CLIENT_PAUSE_PROBE_H_
#define PENSTOCK_PS_CLIENT_PAUSE_PROBE_H_

#include <cstdint>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ps/client/training_connection.h"
#include "transport/base/steady_mutex.h"

namespace penstock::ps {

// A probe that repeatedly makes empty pulls at all shards, like a worker. Each
// call waits for the shard's primary, and goes to the new primary when the
// shard moves. Thread-safe, except for the destructor.
class PauseProbe {
 public:
  struct Pauses {
    absl::Duration longest;
    uint64_t pulls = 0;
    // The error that has ended the pulls; OK while they continue.
    absl::Status failure;
  };

  // Begins. Limits each pull by `timeout`.
  PauseProbe(std::shared_ptr<const TrainingConnection> connection,
             absl::Duration timeout);
  // Waits for the present attempt, which takes up to 1 s.
  ~PauseProbe();
  PauseProbe(const PauseProbe&) = delete;
  PauseProbe& operator=(const PauseProbe&) = delete;

  // Returns the pauses so far, including the pause of the pull in progress.
  Pauses pauses() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void ThreadLoop();
  // Returns true if a failed pull may be repeated until `limit`.
  bool MayRepeat(absl::Time limit) const ABSL_LOCKS_EXCLUDED(mu_);

  const std::shared_ptr<const TrainingConnection> connection_;
  const absl::Duration timeout_;
  mutable base::SteadyMutex mu_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time begun_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();
  Pauses pauses_ ABSL_GUARDED_BY(mu_);
  // Declared last, because the thread uses all other members.
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_PAUSE_PROBE_H_
