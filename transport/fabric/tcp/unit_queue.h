// Collects an endpoint's outgoing units for the next write.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_UNIT_QUEUE_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_UNIT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "transport/fabric/tcp/framing.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace tcp {

// Units to send after the write in flight, as pieces. Small units share a
// piece. Not thread-safe.
class UnitQueue {
 public:
  // Adds a copy of a unit, or of a unit's header.
  void Add(const UnitHeader& header, absl::Span<const uint8_t> body);
  // Adds the remaining bytes of a unit, without a copy.
  void AddBytes(memory::Bytes bytes);

  // Returns true if the queue is short enough to accept a packet. If it returns
  // false, a later TakeCredit() returns true once.
  bool HasCredit();
  // Returns true once when the queue has become short again after HasCredit()
  // returned false.
  bool TakeCredit();

  bool empty() const { return pieces_.empty(); }
  size_t bytes() const { return bytes_; }
  // Returns all pieces, and leaves the queue empty.
  std::vector<memory::Bytes> Take();
  // Drops all pieces, and all later ones.
  void Close();

 private:
  // Turns open_ into an ordinary piece, to which nothing is appended.
  void CloseOpen();

  // The finished pieces. Small units are collected in open_, which follows the
  // last of these pieces.
  std::vector<memory::Bytes> pieces_;
  std::shared_ptr<std::string> open_;
  size_t bytes_ = 0;
  bool wants_credit_ = false;
  bool closed_ = false;
};

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_UNIT_QUEUE_H_
