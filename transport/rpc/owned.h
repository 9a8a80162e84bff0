// Makes payloads that outlive the event that delivered them.

#ifndef PENSTOCK_TRANSPORT_RPC_OWNED_H_
#define PENSTOCK_TRANSPORT_RPC_OWNED_H_

#include <utility>

#include "absl/status/statusor.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace rpc {

// Returns the payload, with copies of all pieces that have no owner.
inline absl::StatusOr<memory::Payload> Owned(const memory::Payload& payload) {
  memory::Payload result;
  for (const memory::Bytes& piece : payload.pieces()) {
    absl::StatusOr<memory::Bytes> owned = memory::Own(piece);
    if (!owned.ok()) return owned.status();
    result.Append(*std::move(owned));
  }
  return result;
}

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_OWNED_H_
