// The payload of kHello, the first frame of each side: the side's limits, and
// the fabrics over which the side can be reached.

#ifndef PENSTOCK_TRANSPORT_WIRE_HELLO_H_
#define PENSTOCK_TRANSPORT_WIRE_HELLO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {
namespace wire {

// Limits a stream's window, in bytes. A side must be able to hold this many
// unread bytes for each stream. Penstock's own window is 4 MiB.
constexpr uint32_t kMaxStreamWindow = 64 * 1024 * 1024;

// A fabric over which the sender may be reachable.
struct FabricOffer {
  std::string fabric;  // the fabric's name, at most 15 bytes
  // True if the sender can use the fabric.
  bool usable = false;
  // If the fabric is usable, the data that the peer needs to connect. Otherwise
  // the reason for the peer's log. At most 1 KiB.
  std::string data;
};

struct Hello {
  // The accepting side's secret. The peer presents it when it connects another
  // path. Empty in a hello from the connecting side.
  std::string token;
  // The number of bytes of messages that the peer may send on a stream before
  // the application reads them: 1 to kMaxStreamWindow.
  uint32_t stream_window = 0;
  // The limit of streams that the peer may have open at the same time.
  uint32_t max_streams = UINT32_MAX;
  std::vector<FabricOffer> offers;  // best first, at most 8
};

std::string EncodeHello(const Hello& hello);

// Parses a hello. Returns INVALID_ARGUMENT if `bytes` are not a hello. Ignores
// bytes after the known fields: later versions may add some.
absl::StatusOr<Hello> ParseHello(absl::Span<const uint8_t> bytes);

}  // namespace wire
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_WIRE_HELLO_H_
