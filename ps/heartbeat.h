// Keeps a worker's memberships alive.

#ifndef PENSTOCK_PS_HEARTBEAT_H_
#define PENSTOCK_PS_HEARTBEAT_H_

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/time/time.h"
#include "grpcpp/alarm.h"
#include "grpcpp/channel.h"
#include "grpcpp/completion_queue.h"
#include "ps/ps.pb.h"

namespace penstock::ps {

// Owns one thread, which holds an Attend stream to each server and writes to
// it every third of the lease, so that two lost beats cost nothing. It waits
// for no server: one that does not take its beat within a lease has its stream
// broken off, and the others' beats go on meanwhile. A stream that breaks is
// opened anew at the next beat; a server that has ABORTED it, because the rank
// has been given away, gets no more.
//
// Thread safety: SayGoodBye and destruction from one thread.
class HeartbeatSender {
 public:
  HeartbeatSender(const std::vector<std::shared_ptr<grpc::Channel>>& servers,
                  const v1::WorkerId& worker, absl::Duration lease);
  // Without SayGoodBye the streams break off, as they would in a crash.
  ~HeartbeatSender();

  // Tells every server that the worker leaves; returns when they know or one
  // lease, at most kGoodByeLimit, is over.
  void SayGoodBye();

  static constexpr absl::Duration kGoodByeLimit = absl::Seconds(2);

 private:
  class Stream;

  void ThreadLoop();
  // Beats until Stop().
  void Attend();
  // Until every stream has said good-bye and ended, or it is time.
  void Leave();
  // Ends every stream at once.
  void BreakOff();
  // Handles one event, or waits in vain until `deadline`. False for Stop()'s.
  bool HandleEvent(absl::Time deadline);
  bool AllEnded() const;
  void Stop(bool say_good_bye);

  const absl::Duration lease_;
  grpc::CompletionQueue queue_;
  grpc::Alarm stop_;  // its event is Stop()'s
  std::atomic<bool> say_good_bye_{false};
  std::vector<std::unique_ptr<Stream>> streams_;  // thread_ only
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_HEARTBEAT_H_
