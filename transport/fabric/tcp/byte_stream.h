// The connection of the tcp fabric, as its owner has negotiated: plain TCP or
// TLS. The fabric opens no sockets of its own.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_BYTE_STREAM_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_BYTE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace tcp {

// The outgoing half of the connection. The owner passes incoming bytes to
// Endpoint::OnBytes(). Called under the session's lock.
class ByteStream {
 public:
  virtual ~ByteStream() = default;

  // Sends the pieces in order, and holds a reference to each piece until it is
  // sent. Then calls Endpoint::OnWritten(), but never from within this call.
  // The endpoint has at most one write in flight.
  virtual void Write(std::vector<memory::Bytes> pieces) = 0;

  // Returns true if a write of `bytes` bytes may wait for more. The owner then
  // calls Endpoint::WriteQueued(false) soon. `received` is the number of
  // packets that the endpoint has received. Called once for each write.
  virtual bool Holds(size_t bytes, uint64_t received) { return false; }
};

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_BYTE_STREAM_H_
