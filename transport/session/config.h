// Configuration of one side of a session.

#ifndef PENSTOCK_TRANSPORT_SESSION_CONFIG_H_
#define PENSTOCK_TRANSPORT_SESSION_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/metrics/labels.h"
#include "transport/session/budget.h"
#include "transport/session/tuning.h"
#include "transport/wire/frame.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace session {

struct Config {
  // The protocol version that both sides speak.
  uint8_t version = wire::kVersion;
  // True for the side that opened the connection. A client opens streams and
  // connects paths.
  bool is_client = false;
  // The fabrics that this side offers in addition to the lifeline, best first.
  std::vector<wire::FabricOffer> offers;
  // The accepting side's secret. A client presents the secret when it connects
  // a path.
  std::string token;
  // Limits how many streams a client may have open at the same time. Used by a
  // server.
  uint32_t max_streams = UINT32_MAX;
  // Limits the size of announced messages; larger ones are refused. Negative:
  // no limit.
  int64_t max_receive_bytes = -1;
  // Caps the bytes of one stream that the peer may send before this side's
  // application reads them. Holds two messages of the largest common tensor
  // chunk. With a larger window, the sender would notice a slow reader later.
  uint32_t stream_window = 4 * 1024 * 1024;
  // True to use messages directly in the peer's memory, without a copy, if the
  // fabric supports it.
  bool load_in_place = true;
  // Delays answers that no thread of the peer waits for; see StreamInput. If
  // true, the session's owner must call Session::SendDeferred() soon after
  // frames were deferred.
  bool defers_answers = false;
  // Caps the eagerly sent bytes that the peer has not read, over all streams.
  // Above the cap, even small messages are announced. The cap bounds the peer's
  // memory, even if the peer leaves many streams unread.
  uint64_t max_eager_unread = 16 * 1024 * 1024;
  // Caps the memory of messages that are being read or wait for the
  // application.
  uint64_t read_budget = 64 * 1024 * 1024;
  // Limits encoded metadata, in bytes. The session keeps at most one byte more,
  // to detect metadata above the limit.
  size_t max_metadata_bytes = SIZE_MAX - 1;
  BudgetLimits budget;
  Tuning tuning;

  metrics::Role role() const {
    return is_client ? metrics::Role::kClient : metrics::Role::kServer;
  }
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_CONFIG_H_
