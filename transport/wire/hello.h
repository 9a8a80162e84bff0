// The first frame of each side: who it is and how else it can be reached.

#ifndef PENSTOCK_TRANSPORT_WIRE_HELLO_H_
#define PENSTOCK_TRANSPORT_WIRE_HELLO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {
namespace wire {

// One fabric that the sender could be reached over.
struct FabricOffer {
  std::string fabric;  // its name, at most 15 bytes
  // Whether it can be used; if not, `data` is the reason, for the peer's log.
  bool usable = false;
  std::string data;  // for the same fabric of the peer, at most 1 KiB
};

struct Hello {
  // The acceptor's secret, to be presented by the peer where it connects a
  // further path; empty from the connecting side.
  std::string token;
  // Largest window of unread message bytes that the peer may fill, per stream.
  uint32_t stream_window = 0;
  // Streams that the peer may have open at once.
  uint32_t max_streams = UINT32_MAX;
  std::vector<FabricOffer> offers;  // best first, at most 8
};

std::string EncodeHello(const Hello& hello);

// INVALID_ARGUMENT where the bytes are not a hello; a hello of later versions
// may carry more fields, which are ignored.
absl::StatusOr<Hello> ParseHello(absl::Span<const uint8_t> bytes);

}  // namespace wire
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_WIRE_HELLO_H_
