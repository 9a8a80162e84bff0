// A call that is repeated until the server has answered it.

#ifndef PENSTOCK_PS_CLIENT_PATIENT_CALL_H_
#define PENSTOCK_PS_CLIENT_PATIENT_CALL_H_

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ps/client/call_loop.h"

namespace penstock::ps {

// A call that is repeated with the same bytes until the call succeeds, fails
// permanently, or reaches its deadline. The service must allow repeated calls.
//
//   UNAVAILABLE          repeats the call: the connection broke, or the server
//                        is restarting
//   RESOURCE_EXHAUSTED   repeats the call, unless a message exceeds gRPC's
//                        limit
//   FAILED_PRECONDITION  first rejoins: a broken connection ends membership.
//                        Returns the error if the rejoin fails, at the tenth
//                        time, or without a `rejoin`
//
// Backs off exponentially between attempts, from 10 ms up to a second. Random
// jitter shortens each wait by up to a half, so that workers spread their
// retries. A wait ends early if the shard of the call moves.
//
// Logs a call that is repeated for long, with the reason of the last attempt.
class PatientCall {
 public:
  using Done = std::function<void(CallLoop::Reply, int attempts)>;
  using Rejoin = std::function<void(std::function<void(absl::Status)>)>;

  // Describes how to log that a call is being repeated. Calls `log` with each
  // line. If `log` is empty, writes to Penstock's log, with one rate limit for
  // all calls of the process.
  struct Notes {
    // Returns a text for the call and its server, such as "push of step 3:
    // server 1 (ps1:7000)". If empty, the log names the method.
    std::function<std::string()> what = nullptr;
    absl::Duration after = absl::Seconds(5);
    absl::Duration every = absl::Minutes(1);
    std::function<void(const std::string&)> log = nullptr;
  };

  // Starts the call. Calls `done` once, in a callback of the loop, which must
  // live until the callback returns. `rejoin` may be empty.
  static void Start(CallLoop* loop, CallLoop::Request request, Rejoin rejoin,
                    Done done, Notes notes);
  static void Start(CallLoop* loop, CallLoop::Request request, Rejoin rejoin,
                    Done done) {
    Start(loop, std::move(request), std::move(rejoin), std::move(done),
          Notes());
  }

 private:
  struct State;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_PATIENT_CALL_H_
