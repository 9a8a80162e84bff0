// Chooses the memory that a message is read into.

#ifndef PENSTOCK_TRANSPORT_SESSION_LANDING_H_
#define PENSTOCK_TRANSPORT_SESSION_LANDING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/bytes.h"
#include "transport/memory/destinations.h"

namespace penstock {
namespace session {

// The memory into which one message is read. A part of the message goes to the
// first unused destination of exactly the part's size, if the program gave one.
// All other parts go into one block, at their offsets in the message modulo 64,
// which preserves their alignment. Not thread-safe.
class Landing {
 public:
  // Chooses memory for `region`. If `destinations` is null or taken, uses only
  // a new block. Fails if memory cannot be allocated.
  static absl::StatusOr<std::unique_ptr<Landing>> Choose(
      const fabric::RemoteRegion& region,
      const std::shared_ptr<memory::Destinations>& destinations,
      fabric::Endpoint* path);

  // Returns the parts to read. Parts that are adjacent both at the peer and
  // here are merged.
  const fabric::RemoteRegion& parts() const { return parts_; }
  std::vector<uint64_t> lengths() const;
  // Returns the memory for `length` bytes of a part.
  absl::Span<uint8_t> At(size_t part, uint64_t offset, size_t length) const {
    return {at_[part] + offset, length};
  }
  // Returns true if some part goes to a destination.
  bool uses_destinations() const { return taken_ != nullptr; }
  // Ends the right to the destinations. Call if no read writes there any more
  // and nobody wants the message.
  void LeaveDestinations() {
    prepared_.clear();
    taken_ = nullptr;
  }
  // Returns the message. Call after all parts have been read. The message's
  // pieces keep the memory and the destinations alive.
  memory::Payload Message() const;

 private:
  // The memory of one part in its destination, or of several parts in the
  // block.
  struct Piece {
    uint64_t size = 0;
    uint64_t at_block = 0;
    const memory::Destination* destination = nullptr;  // null: the block
  };

  Landing() = default;
  // Finds a destination for each part. Prepares and takes the found
  // destinations.
  std::vector<const memory::Destination*> Match(
      const fabric::RemoteRegion& region,
      const std::shared_ptr<memory::Destinations>& destinations,
      fabric::Endpoint* path);
  // Adds the region's parts. Returns the size of the block.
  uint64_t Arrange(const fabric::RemoteRegion& region,
                   const std::vector<const memory::Destination*>& matches);
  void AddPart(const fabric::RemotePart& part, bool joins);
  void Locate();

  std::shared_ptr<const void> taken_;  // the right to the destinations
  std::vector<std::shared_ptr<const void>> prepared_;  // destroyed first
  memory::Block block_;
  // The pieces. One is inline, because most messages are in one piece.
  absl::InlinedVector<Piece, 1> pieces_;
  fabric::RemoteRegion parts_;
  absl::InlinedVector<size_t, 1> piece_of_;  // by part
  absl::InlinedVector<uint8_t*, 1> at_;      // where each part begins
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_LANDING_H_
