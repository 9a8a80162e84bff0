// A call that is repeated until the server has answered it.

#ifndef PENSTOCK_PS_CLIENT_PATIENT_CALL_H_
#define PENSTOCK_PS_CLIENT_PATIENT_CALL_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "ps/client/call_loop.h"

namespace penstock::ps {

// Makes a call, again and again with the same bytes, until it succeeds, fails
// for good, or its deadline is over. The service must allow that.
//
//   UNAVAILABLE          repeats it: the connection broke, or the server is
//                        being started anew
//   RESOURCE_EXHAUSTED   repeats it, unless gRPC says it: a message above a
//                        limit stays above it
//   FAILED_PRECONDITION  first rejoins: a broken connection ends membership.
//                        Returns the error if that fails, at the tenth time, or
//                        where there is nothing to rejoin
//
// Waits between attempts: 10 ms and then twice as long each time, up to a
// second, less up to a half by chance, so that workers do not come together.
class PatientCall {
 public:
  using Done = std::function<void(CallLoop::Reply, int attempts)>;
  using Rejoin = std::function<void(std::function<void(absl::Status)>)>;

  // The loop must live until `done` was called, which happens once, on the
  // loop's thread. `rejoin` may be empty.
  static void Start(CallLoop* loop, CallLoop::Request request, Rejoin rejoin,
                    Done done);

 private:
  struct State;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_PATIENT_CALL_H_
