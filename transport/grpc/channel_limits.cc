#include "transport/grpc/channel_limits.h"

#include <grpc/impl/codegen/grpc_types.h>

#include <algorithm>
#include <climits>

namespace penstock {
namespace core {
namespace {

constexpr int kTwoHoursMs = 2 * 60 * 60 * 1000;

// Returns the argument `name` as milliseconds, or `fallback` if it is not set,
// but at least `least`. INT_MAX means infinite.
absl::Duration Milliseconds(const grpc_core::ChannelArgs& args,
                            const char* name, int fallback, int least) {
  const int value = std::max(least, args.GetInt(name).value_or(fallback));
  return value == INT_MAX ? absl::InfiniteDuration()
                          : absl::Milliseconds(value);
}

int Count(const grpc_core::ChannelArgs& args, const char* name, int fallback) {
  return std::max(0, args.GetInt(name).value_or(fallback));
}

connection::Keepalive::Config ReadKeepalive(const grpc_core::ChannelArgs& args,
                                            bool is_client) {
  connection::Keepalive::Config keepalive;
  keepalive.time = Milliseconds(args, GRPC_ARG_KEEPALIVE_TIME_MS,
                                is_client ? INT_MAX : kTwoHoursMs, 1);
  keepalive.timeout =
      Milliseconds(args, GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20 * 1000, 0);
  keepalive.permit_without_calls =
      args.GetBool(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS).value_or(false);
  // Sets the limit on pings without data, which only clients have.
  keepalive.max_pings_without_data =
      is_client ? Count(args, GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 2) : 0;
  return keepalive;
}

connection::PingPolice::Config ReadPingPolice(
    const grpc_core::ChannelArgs& args) {
  connection::PingPolice::Config police;
  police.min_interval =
      Milliseconds(args, GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                   5 * 60 * 1000, 0);
  police.permit_without_calls =
      args.GetBool(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS).value_or(false);
  police.max_strikes = Count(args, GRPC_ARG_HTTP2_MAX_PING_STRIKES, 2);
  return police;
}

}  // namespace

ChannelLimits ReadChannelLimits(const grpc_core::ChannelArgs& args,
                                bool is_client) {
  ChannelLimits limits;
  if (!args.WantMinimalStack()) {
    limits.max_receive_bytes =
        args.GetInt(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH)
            .value_or(GRPC_DEFAULT_MAX_RECV_MESSAGE_LENGTH);
  }
  limits.max_metadata_bytes = Count(args, GRPC_ARG_MAX_METADATA_SIZE, 8 * 1024);
  const int max_streams =
      args.GetInt(GRPC_ARG_MAX_CONCURRENT_STREAMS).value_or(-1);
  if (max_streams >= 0) limits.max_streams = max_streams;
  limits.keepalive = ReadKeepalive(args, is_client);
  limits.ping_police = ReadPingPolice(args);
  return limits;
}

}  // namespace core
}  // namespace penstock
