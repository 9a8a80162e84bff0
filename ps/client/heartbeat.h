// Keeps a worker's memberships alive.

#ifndef PENSTOCK_PS_CLIENT_HEARTBEAT_H_
#define PENSTOCK_PS_CLIENT_HEARTBEAT_H_

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/completion_queue.h"
#include "ps/wire/ps.pb.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

// Holds an Attend stream to each server, and sends a heartbeat on it every
// third of the lease. Two lost heartbeats thus cost nothing.
//
// A thread of its own sends them and waits by the steady clock. gRPC's own
// waits are by the system's: if that is set back by an hour, what gRPC should
// do in ten seconds comes an hour late, and the worker would be lost. So a
// second thread takes gRPC's events, and that one never waits for a time. It
// waits in gRPC only while a stream has an operation under way: there it would
// take what comes for the worker's calls, too, and wake their threads.
//
// No server delays the heartbeats to others. A stream that does not take its
// heartbeat within a lease is cancelled. A stream that ends is opened again at
// the next heartbeat, unless the server ended it for good: with ABORTED, as
// another process has the worker's rank or the server another training, or with
// DATA_LOSS, as it was started anew.
//
// Call SayGoodBye() and the destructor from one thread.
class HeartbeatSender {
 public:
  // Starts the threads. `lease` is the shortest of the servers' leases.
  HeartbeatSender(const std::vector<std::shared_ptr<grpc::Channel>>& servers,
                  uint64_t run, const v1::WorkerId& worker,
                  absl::Duration lease);
  // Cancels the streams, so that the servers count the worker as lost, unless
  // SayGoodBye() was called. Joins the threads.
  ~HeartbeatSender();

  // Tells every server that the worker leaves, and ends the threads. Blocks
  // until all have answered, or for one lease, at most kGoodByeLimit. Servers
  // that have not answered by then may count the worker as lost.
  void SayGoodBye();

  static constexpr absl::Duration kGoodByeLimit = absl::Seconds(2);

 private:
  class Stream;

  void SendLoop() ABSL_LOCKS_EXCLUDED(mu_);
  // Until the queue is shut down and empty.
  void EventLoop() ABSL_LOCKS_EXCLUDED(mu_);
  // Sends heartbeats until Stop().
  void AttendLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Says good-bye on every stream and waits until all have ended, or for the
  // limit of SayGoodBye().
  void LeaveLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Cancels the streams that are left and waits for their ends.
  void BreakOffLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool AllEndedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool AnyUnderWayLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Stop(bool say_good_bye) ABSL_LOCKS_EXCLUDED(mu_);

  const absl::Duration lease_;
  grpc::CompletionQueue queue_;
  absl::Mutex mu_;
  base::SteadyCondVar changed_;  // wakes sender_
  absl::CondVar started_;        // wakes receiver_
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool say_good_bye_ ABSL_GUARDED_BY(mu_) = false;
  bool has_sent_all_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::unique_ptr<Stream>> streams_ ABSL_GUARDED_BY(mu_);
  std::thread sender_;
  std::thread receiver_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_HEARTBEAT_H_
