// Recognises answers that say that a server has not run a call.

#ifndef PENSTOCK_PYTHON_RPC_DECLINED_H_
#define PENSTOCK_PYTHON_RPC_DECLINED_H_

#include "absl/strings/string_view.h"

namespace penstock::python {

// Returns true if the head of an answer says that the server declines the call.
// The second byte of a head decides this; penstock/grpc/_wire.py defines heads.
inline bool IsDeclined(absl::string_view head) {
  return head.size() >= 2 && head[1] != 0;
}

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_DECLINED_H_
