// The connection that the tcp fabric runs on: plain TCP or TLS, whatever its
// owner has negotiated. The fabric opens no sockets of its own.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_BYTE_STREAM_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_BYTE_STREAM_H_

#include <vector>

#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace tcp {

// The outgoing half. What comes in is handed to Endpoint::OnBytes.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Sends the pieces in order. At most one write is under way: the next may
  // start once Endpoint::OnWritten() has been called, which never happens from
  // within this function.
  virtual void Write(std::vector<memory::Bytes> pieces) = 0;
};

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_BYTE_STREAM_H_
