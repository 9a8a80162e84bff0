// Keeps a worker's memberships alive.

#ifndef PENSTOCK_PS_CLIENT_HEARTBEAT_H_
#define PENSTOCK_PS_CLIENT_HEARTBEAT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/channel.h"
#include "grpcpp/completion_queue.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

// Holds an Attend stream to each server, on a thread of its own, and sends a
// heartbeat on it every third of the lease. Two lost heartbeats thus cost
// nothing.
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
  // Starts the thread. `lease` is the shortest of the servers' leases.
  HeartbeatSender(const std::vector<std::shared_ptr<grpc::Channel>>& servers,
                  uint64_t run, const v1::WorkerId& worker,
                  absl::Duration lease);
  // Cancels the streams, so that the servers count the worker as lost, unless
  // SayGoodBye() was called. Joins the thread.
  ~HeartbeatSender();

  // Tells every server that the worker leaves, and ends the thread. Blocks
  // until all have answered, or for one lease, at most kGoodByeLimit. Servers
  // that have not answered by then may count the worker as lost.
  void SayGoodBye();

  static constexpr absl::Duration kGoodByeLimit = absl::Seconds(2);

 private:
  class Stream;

  void ThreadLoop();
  // Sends heartbeats until Stop().
  void Attend();
  // Says good-bye on every stream and waits until all have ended, or for the
  // limit of SayGoodBye().
  void Leave();
  // Cancels the streams that are left and waits for their ends.
  void BreakOff();
  // Handles one event, or returns at `deadline`. Returns false if it was the
  // event of Stop().
  bool HandleEvent(absl::Time deadline);
  bool AllEnded() const;
  void Stop(bool say_good_bye);

  const absl::Duration lease_;
  grpc::CompletionQueue queue_;
  grpc::Alarm stop_;  // cancelled by Stop(), which makes its event
  std::atomic<bool> say_good_bye_{false};
  std::vector<std::unique_ptr<Stream>> streams_;  // thread_ only
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_HEARTBEAT_H_
