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
#include "ps/client/route.h"
#include "ps/wire/ps.pb.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

// A sender of heartbeats. Keeps an Attend stream to each server, and sends a
// heartbeat on each stream every third of the lease, so that two lost
// heartbeats do no harm.
//
// The sender thread sends the heartbeats and waits by the steady clock. gRPC's
// timers use the system's clock: if that clock is set back by an hour, they are
// an hour late, and the worker would be lost. Therefore a second thread, the
// receiver, takes gRPC's events, and never waits with a timeout. The receiver
// waits in gRPC only while a stream has an operation in progress. Otherwise the
// receiver would also take the events of the worker's calls, and wake their
// threads.
//
// No server delays the heartbeats to other servers. A stream that does not
// accept its heartbeat within a lease is cancelled. An ended stream is opened
// again at the next heartbeat, unless the server ended it with:
// - ABORTED: another process has the worker's rank, or the server has another
//   training;
// - DATA_LOSS: the server was restarted.
//
// With routes, the streams go to the shards' primaries. The stream of a shard
// that has moved is opened again, at the new primary, at the next heartbeat.
//
// Call Leave() and the destructor from one thread.
class HeartbeatSender {
 public:
  // Starts the threads. `lease` is the shortest of the servers' leases.
  // `routes` is empty, or has a route for each server, which must live as long
  // as the sender.
  HeartbeatSender(const std::vector<std::shared_ptr<grpc::Channel>>& servers,
                  uint64_t run, const v1::WorkerId& worker,
                  absl::Duration lease, const std::vector<Route*>& routes = {});
  // Cancels the streams, so that the servers count the worker as lost, unless
  // Leave() was called. Joins the threads.
  ~HeartbeatSender();

  // Tells every server that the worker leaves, and ends the threads. Blocks
  // until all have answered, or for one lease, at most kLeaveLimit. Servers
  // that have not answered by then may count the worker as lost.
  void Leave();

  static constexpr absl::Duration kLeaveLimit = absl::Seconds(2);

 private:
  class Stream;

  void SendLoop() ABSL_LOCKS_EXCLUDED(mu_);
  // Handles gRPC's events until the queue is shut down and empty.
  void EventLoop() ABSL_LOCKS_EXCLUDED(mu_);
  // Sends heartbeats until Stop().
  void AttendLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Says good-bye on every stream. Waits until all streams have ended, at most
  // for the limit of Leave().
  void LeaveLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Cancels the remaining streams and waits until they have ended.
  void BreakOffLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool AllEndedLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool AnyUnderWayLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Stop(bool leaves) ABSL_LOCKS_EXCLUDED(mu_);

  const absl::Duration lease_;
  grpc::CompletionQueue queue_;
  absl::Mutex mu_;
  base::SteadyCondVar changed_;  // wakes sender_
  absl::CondVar started_;        // wakes receiver_
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool leaves_ ABSL_GUARDED_BY(mu_) = false;
  bool has_sent_all_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<std::unique_ptr<Stream>> streams_ ABSL_GUARDED_BY(mu_);
  std::thread sender_;
  std::thread receiver_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_HEARTBEAT_H_
