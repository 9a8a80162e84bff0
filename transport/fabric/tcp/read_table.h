// The reads of an endpoint that wait for bytes.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_READ_TABLE_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_READ_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/tcp/framing.h"

namespace penstock {
namespace fabric {
namespace tcp {

// Marks the key of a region whose first chunk is pushed.
constexpr uint64_t kPushed = uint64_t{1} << 63;

// The reads of one side: reads that were requested from the peer, and reads of
// chunks that the peer pushes without a request. Does no I/O. Not thread-safe.
class ReadTable {
 public:
  struct Read {
    absl::Span<uint8_t> into;  // data() is null after Divert()
    uint64_t cookie;           // the caller's
  };

  bool empty() const { return requested_.empty() && expected_.empty(); }
  // Adds a read for a chunk that the peer will push. Returns false if the chunk
  // must be requested instead: either the peer does not push it, or the push
  // has arrived and was dropped because no read waited.
  bool Expect(const RemotePart& part, uint64_t offset, const Read& read);
  // Adds a read. Returns its number, for the request.
  uint64_t Request(const Read& read);

  // Takes the memory from the reads with this cookie. The reads remain. Takes a
  // time linear in the number of reads.
  void Divert(uint64_t cookie);

  // Checks a push whose header has arrived. The peer pushes in the order of its
  // keys. Returns INVALID_ARGUMENT if the peer has broken a rule.
  absl::Status BeginPush(const UnitHeader& unit);
  // Returns the read that waits for this unit, or null. Valid until the next
  // change.
  const Read* Find(const UnitHeader& unit) const;
  // Removes the read that waits for this unit. Returns its cookie.
  absl::optional<uint64_t> Take(const UnitHeader& unit);
  // Removes all reads. Returns their cookies: requested reads first.
  std::vector<uint64_t> TakeAll();

 private:
  using Reads = std::map<uint64_t, Read>;

  Reads requested_;  // by number
  Reads expected_;   // by key
  uint64_t next_number_ = 1;
  uint64_t last_pushed_ = 0;  // a key
};

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_READ_TABLE_H_
