#include "ps/other_servers.h"

#include <utility>

#include "grpcpp/create_channel.h"
#include "penstock/penstock.h"
#include "ps/access/send_secret.h"
#include "ps/tls.h"
#include "tensor_service/status.h"

namespace penstock::ps {
namespace {

// Limits gRPC's pause between two attempts to connect, which grows to two
// minutes by default. A restarted server thus soon gets the log of its shards.
constexpr int kMostBackoffMs = 1000;

}  // namespace

absl::StatusOr<Connect> ToOtherServers(const ServerFlags& flags) {
  auto security = ClientSecurity(flags.tls);
  if (!security.ok()) return security.status();
  // Follows the file, because the secret may change. SIGHUP reports an
  // unreadable secret.
  auto secret = FollowSecret(flags.access.secret);
  if (!secret.ok()) return secret.status();
  return [security = *security,
          secret = *std::move(secret)](const std::string& address) {
    grpc::ChannelArguments arguments = tensor::UnlimitedMessages();
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMostBackoffMs);
    return grpc::experimental::CreateCustomChannelWithInterceptors(
        address, Credentials(security, {}), arguments, SendSecret(secret));
  };
}

ServersInView AllServers(FindFirst find, ServersInView in_view) {
  return [find = std::move(find), in_view = std::move(in_view)] {
    std::vector<std::string> addresses;
    const std::shared_ptr<const Server> server = find();
    if (server == nullptr) return addresses;
    const auto training = server->training();
    if (training == nullptr || training->server != 0 || !server->has_values()) {
      return addresses;
    }
    addresses = in_view();
    if (addresses.empty()) addresses = training->tables->placement().servers();
    return addresses;
  };
}

}  // namespace penstock::ps
