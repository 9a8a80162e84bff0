// The configuration of one side of a session.

#ifndef PENSTOCK_TRANSPORT_SESSION_CONFIG_H_
#define PENSTOCK_TRANSPORT_SESSION_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/session/budget.h"
#include "transport/session/tuning.h"
#include "transport/wire/frame.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace session {

struct Config {
  // The version of the protocol that both sides speak.
  uint8_t version = wire::kVersion;
  // The side that opened the connection: opens streams, connects paths.
  bool is_client = false;
  // The fabrics that this side offers besides the lifeline, best first.
  std::vector<wire::FabricOffer> offers;
  // The acceptor's secret for paths to come.
  std::string token;
  // A server's: streams that the client may have open at once.
  uint32_t max_streams = UINT32_MAX;
  // Announced messages above this are refused; negative: no limit.
  int64_t max_receive_bytes = -1;
  // Unread bytes that the peer may have under way on one stream. Two messages
  // of the largest common tensor chunk; more only delays the reader's
  // push-back.
  uint32_t stream_window = 4 * 1024 * 1024;
  // Messages may be used in the peer's memory, where a fabric can do that.
  bool load_in_place = true;
  // Limits the bytes that the peer has not read on all streams together. Above
  // this, even small messages are announced, and the peer fetches them when it
  // wants them. This bounds the peer's memory for any number of streams.
  uint64_t max_eager_unread = 16 * 1024 * 1024;
  // Memory for messages that are being read or wait for the application.
  uint64_t read_budget = 64 * 1024 * 1024;
  // Of metadata, as encoded, no more than one byte beyond this is kept: enough
  // to see that it is too much.
  size_t max_metadata_bytes = SIZE_MAX - 1;
  BudgetLimits budget;
  Tuning tuning;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_CONFIG_H_
