// The status of calls whose channel the program closes.

#ifndef PENSTOCK_PYTHON_RPC_CLOSED_H_
#define PENSTOCK_PYTHON_RPC_CLOSED_H_

#include "absl/status/status.h"

namespace penstock::python {

// Returns the status that grpcio gives such calls.
inline absl::Status ChannelClosed() {
  return absl::CancelledError("Channel closed!");
}

// Returns the status that the program sees at the end of a call. Differs from
// `status` if the program has closed the channel.
inline absl::Status EndOf(absl::Status status, bool is_closed) {
  return is_closed && absl::IsUnavailable(status) ? ChannelClosed() : status;
}

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_CLOSED_H_
