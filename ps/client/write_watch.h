// Asks servers for the progress of a checkpoint.

#ifndef PENSTOCK_PS_CLIENT_WRITE_WATCH_H_
#define PENSTOCK_PS_CLIENT_WRITE_WATCH_H_

#include <cstdint>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ps/client/fanout.h"
#include "ps/client/training_connection.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

// A watch on the writing of a checkpoint. Asks all servers for their progress a
// few times a second, from its own thread. Calls `written` on that thread with
// the sums. Asks again if a server does not answer soon. The destructor waits
// for the answers under way.
class WriteWatch {
 public:
  // `connection` and `written` must outlive the watch.
  WriteWatch(const TrainingConnection& connection,
             const std::function<void(uint64_t done, uint64_t total)>& written);
  ~WriteWatch();
  WriteWatch(const WriteWatch&) = delete;
  WriteWatch& operator=(const WriteWatch&) = delete;

 private:
  void ThreadLoop() ABSL_LOCKS_EXCLUDED(mu_);
  void AskOnce();

  const std::function<void(uint64_t done, uint64_t total)>& written_;
  Fanout servers_;  // the thread's
  absl::Mutex mu_;
  base::SteadyCondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_WRITE_WATCH_H_
