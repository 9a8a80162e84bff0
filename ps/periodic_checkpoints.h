// Checkpoints at regular times, which server 0 has all servers write.

#ifndef PENSTOCK_PS_PERIODIC_CHECKPOINTS_H_
#define PENSTOCK_PS_PERIODIC_CHECKPOINTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "ps/client/checkpoint.h"
#include "ps/server/server.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

// From the time on at which the server has values and is server 0; other
// servers do nothing. An error costs one checkpoint: the next one is tried at
// its time.
class PeriodicCheckpoints {
 public:
  struct Options {
    absl::Duration interval;
    CheckpointOptions checkpoint;
    // Makes a channel to a server of the placement, this one too.
    std::function<std::shared_ptr<grpc::Channel>(const std::string& address)>
        connect;
    // Called with a line for people, on a thread of its own.
    std::function<void(const std::string&)> log;
  };

  // Starts the thread. `server` outlives it.
  PeriodicCheckpoints(Server* server, Options options);
  // Waits for the checkpoint that is being taken, if any.
  ~PeriodicCheckpoints();

 private:
  void ThreadLoop() ABSL_LOCKS_EXCLUDED(mu_);
  // Returns whether there is another time.
  bool Wait() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Take();

  Server* const server_;
  const Options options_;
  std::shared_ptr<const Connection> connection_;  // thread_ only
  absl::Mutex mu_;
  base::SteadyCondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PERIODIC_CHECKPOINTS_H_
