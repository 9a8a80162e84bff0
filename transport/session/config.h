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
  // The fabrics that this side offers besides the lifeline, best first.
  std::vector<wire::FabricOffer> offers;
  // The accepting side's secret. A client presents the secret when it connects
  // a path.
  std::string token;
  // Limits how many streams a client may have open at once. Used by a server.
  uint32_t max_streams = UINT32_MAX;
  // Limits the size of announced messages; larger ones are refused. Negative:
  // no limit.
  int64_t max_receive_bytes = -1;
  // Limits the bytes of one stream that the peer may send before this side
  // reads them. Holds two messages of the largest common tensor chunk. A larger
  // window would make the sender notice a slow reader later.
  uint32_t stream_window = 4 * 1024 * 1024;
  // True to use messages in the peer's memory, if the fabric supports it.
  bool load_in_place = true;
  // Delays answers that no thread of the peer waits for; see StreamInput. The
  // session's owner must then call Session::SendDeferred() soon.
  bool defers_answers = false;
  // Limits the eagerly sent bytes that the peer has not read, over all streams.
  // Above the limit, even small messages are announced. This limit bounds the
  // peer's memory, even if the peer leaves many streams unread.
  uint64_t max_eager_unread = 16 * 1024 * 1024;
  // Limits the memory for messages that are being read or wait for the
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
