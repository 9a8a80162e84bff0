// A call of TensorClient's, and the rest of its timeout.

#ifndef PENSTOCK_TENSOR_SERVICE_EXCHANGE_CLIENT_ATTEMPT_H_
#define PENSTOCK_TENSOR_SERVICE_EXCHANGE_CLIENT_ATTEMPT_H_

#include <algorithm>
#include <chrono>

#include "absl/time/time.h"
#include "tensor_service/calls.h"
#include "tensor_service/client.h"

namespace penstock::tensor {

struct TensorClient::Attempt {
  using Clock = std::chrono::steady_clock;  // the system's clock may be set

  explicit Attempt(const TensorClient& client)
      : queue(client.interrupted_),
        timeout(client.timeout_),
        limit(client.timeout_) {}

  // Returns the time that is left for another call.
  absl::Duration Left() const {
    return std::max(limit - absl::FromChrono(Clock::now() - begin),
                    absl::ZeroDuration());
  }

  CallQueue queue;
  absl::Duration timeout;  // of the first call
  const absl::Duration limit;
  const Clock::time_point begin = Clock::now();
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_EXCHANGE_CLIENT_ATTEMPT_H_
