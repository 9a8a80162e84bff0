// The end of calls whose channel the program closes.

#ifndef PENSTOCK_PYTHON_RPC_CLOSED_H_
#define PENSTOCK_PYTHON_RPC_CLOSED_H_

#include "absl/status/status.h"

namespace penstock::python {

// Returns grpcio's end of such calls.
inline absl::Status ChannelClosed() {
  return absl::CancelledError("Channel closed!");
}

// Returns the status with which a call ends for the program. The status differs
// if the program has closed its channel.
inline absl::Status EndOf(absl::Status status, bool is_closed) {
  return is_closed && absl::IsUnavailable(status) ? ChannelClosed() : status;
}

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_CLOSED_H_
