// Decides where the bytes of a message that is read come to lie.

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

// Memory for one message. A part of its region is read into a destination of
// its size, if the program has given one: the first of that size that is not
// used yet. All other parts are read into one block, where they lie as they do
// in the message, modulo 64, so that what is aligned there is aligned here.
// Keeps all of that memory. Not thread-safe.
class Landing {
 public:
  // `destinations` may be null, or taken: then there is but the block. Returns
  // an error if there is no memory.
  static absl::StatusOr<std::unique_ptr<Landing>> Choose(
      const fabric::RemoteRegion& region,
      const std::shared_ptr<memory::Destinations>& destinations,
      fabric::Endpoint* path);

  // Returns the parts to read. Parts that are adjacent at the peer and here are
  // one part.
  const fabric::RemoteRegion& parts() const { return parts_; }
  std::vector<uint64_t> lengths() const;
  // Returns where the bytes of a part come to lie.
  absl::Span<uint8_t> At(size_t part, uint64_t offset, size_t length) const {
    return {at_[part] + offset, length};
  }
  // Returns the message, once the read has ended. The message's pieces keep the
  // memory, and the right to the destinations.
  memory::Payload Message() const;

 private:
  // A part in its destination, or several in the block.
  struct Piece {
    uint64_t size = 0;
    uint64_t at_block = 0;
    const memory::Destination* destination = nullptr;  // null: the block
  };

  Landing() = default;
  // Finds a destination for each part. Prepares and takes those that it finds.
  std::vector<const memory::Destination*> Match(
      const fabric::RemoteRegion& region,
      const std::shared_ptr<memory::Destinations>& destinations,
      fabric::Endpoint* path);
  // Adds the region's parts. Returns how large the block must be.
  uint64_t Arrange(const fabric::RemoteRegion& region,
                   const std::vector<const memory::Destination*>& matches);
  void AddPart(const fabric::RemotePart& part, bool joins);
  void Locate();

  std::shared_ptr<const void> taken_;  // the right to the destinations
  std::vector<std::shared_ptr<const void>> prepared_;  // ended before that
  memory::Block block_;
  // One of each inline: most messages are in one piece.
  absl::InlinedVector<Piece, 1> pieces_;
  fabric::RemoteRegion parts_;
  absl::InlinedVector<size_t, 1> piece_of_;  // of each part
  absl::InlinedVector<uint8_t*, 1> at_;      // where each part begins
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_LANDING_H_
