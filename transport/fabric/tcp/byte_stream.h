// The connection that the tcp fabric runs on: plain TCP or TLS, as its owner
// has negotiated. The fabric opens no sockets of its own.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_BYTE_STREAM_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_BYTE_STREAM_H_

#include <vector>

#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace tcp {

// The outgoing half of the connection. Its owner hands what comes in to
// Endpoint::OnBytes(). Called under the session's lock.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Sends the pieces in order, keeping a share of each until it is sent. Calls
  // Endpoint::OnWritten() when that is done, but never from within this call.
  // The endpoint has at most one write under way.
  virtual void Write(std::vector<memory::Bytes> pieces) = 0;
};

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_BYTE_STREAM_H_
