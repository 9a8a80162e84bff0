// Keeps the turn of the caller that writes a checkpoint.

#ifndef PENSTOCK_PS_CLIENT_CHECKPOINT_TURN_KEEPER_H_
#define PENSTOCK_PS_CLIENT_CHECKPOINT_TURN_KEEPER_H_

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ps/client/fanout.h"
#include "ps/client/training_connection.h"
#include "ps/wire/ps.pb.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

// Renews the turn of an attempt at server 0 from its own thread, until the
// destructor. Ignores errors: the commit of an attempt that was given up fails.
// The destructor waits for a renewal under way, for some seconds at most.
class CheckpointTurnKeeper {
 public:
  CheckpointTurnKeeper(const TrainingConnection& connection,
                       const v1::CheckpointAttempt& attempt);
  ~CheckpointTurnKeeper();
  CheckpointTurnKeeper(const CheckpointTurnKeeper&) = delete;
  CheckpointTurnKeeper& operator=(const CheckpointTurnKeeper&) = delete;

 private:
  void ThreadLoop() ABSL_LOCKS_EXCLUDED(mu_);

  v1::AttendCheckpointRequest renewal_;
  Fanout server_;  // the thread's
  absl::Mutex mu_;
  base::SteadyCondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_CHECKPOINT_TURN_KEEPER_H_
