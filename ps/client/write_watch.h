// Asks servers how far a checkpoint is that they write.

#ifndef PENSTOCK_PS_CLIENT_WRITE_WATCH_H_
#define PENSTOCK_PS_CLIENT_WRITE_WATCH_H_

#include <cstdint>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "ps/client/connection.h"
#include "ps/client/fanout.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

// Asks all servers a few times a second while it lives, from a thread of its
// own, on which it calls `written` with the sums of what they say. Servers that
// do not answer soon are asked again. Its destructor waits for the answers
// under way.
class WriteWatch {
 public:
  // What is given outlives it.
  WriteWatch(const Connection& connection,
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
