// Keeps a worker's memberships alive.

#ifndef PENSTOCK_PS_HEARTBEAT_H_
#define PENSTOCK_PS_HEARTBEAT_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "ps/ps.pb.h"

namespace penstock::ps {

// Owns one thread, which holds an Attend stream to each server and writes to
// it every third of the lease, so that two lost beats cost nothing. A stream
// that breaks is opened anew at the next beat; a server that has ABORTED it,
// because the rank has been given away, gets no more.
//
// Thread safety: SayGoodBye and destruction from one thread.
class HeartbeatSender {
 public:
  HeartbeatSender(std::vector<std::shared_ptr<grpc::Channel>> servers,
                  const v1::WorkerId& worker, absl::Duration lease);
  // Without SayGoodBye the streams break off, as they would in a crash.
  ~HeartbeatSender();

  // Tells every server that the worker leaves; returns when they know or one
  // lease, at most kGoodByeLimit, is over.
  void SayGoodBye();

  static constexpr absl::Duration kGoodByeLimit = absl::Seconds(2);

 private:
  struct Stream;

  void ThreadLoop() ABSL_LOCKS_EXCLUDED(mu_);
  void Beat(Stream* stream, bool leaving);
  void Stop(bool say_good_bye) ABSL_LOCKS_EXCLUDED(mu_);

  const v1::WorkerId worker_;
  const absl::Duration lease_;
  std::vector<std::unique_ptr<Stream>> streams_;  // fixed; used by thread_

  absl::Mutex mu_;
  absl::CondVar wake_;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  bool say_good_bye_ ABSL_GUARDED_BY(mu_) = false;
  bool done_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_HEARTBEAT_H_
