#include "bench/rpc/setup/transports.h"

#include <unistd.h>

#include <atomic>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace penstock {
namespace bench {
namespace {

Options Require(Fabric fabric) {
  Options options;
  options.policy = Policy::kRequire;
  options.fabrics = std::vector<Fabric>{fabric};
  return options;
}

// Returns a unique name, from this process's id and a count.
std::string AbstractSocket() {
  static std::atomic<int> count{0};
  return absl::StrCat("unix-abstract:penstock-bench-", getpid(), "-",
                      count.fetch_add(1));
}

// Returns the PathReport::path of `transport`'s connections; empty for stock
// gRPC.
absl::string_view ExpectedPath(Transport transport) {
  switch (transport) {
    case Transport::kTcp:
    case Transport::kUds:
    case Transport::kInproc:
      return "";
    case Transport::kPenstockTcp:
      return "tcp";
    case Transport::kShm:
      return "shm";
    case Transport::kVerbs:
      return "verbs";
  }
  return "";
}

absl::optional<Options> RequireVerbs(const std::string& device) {
  Options options = Require(Fabric::kVerbs);
  // Without `device`, the environment decides.
  if (!device.empty()) options.verbs_device = device;
  return options;
}

}  // namespace

absl::optional<Options> PenstockOptions(Transport transport,
                                        const std::string& device) {
  switch (transport) {
    case Transport::kTcp:
    case Transport::kUds:
    case Transport::kInproc:
      return absl::nullopt;
    case Transport::kPenstockTcp:
      return Require(Fabric::kTcp);
    case Transport::kShm:
      return Require(Fabric::kShm);
    case Transport::kVerbs:
      return RequireVerbs(device);
  }
  return absl::nullopt;
}

std::string ListenAddress(Transport transport, const std::string& host) {
  switch (transport) {
    case Transport::kTcp:
    case Transport::kPenstockTcp:
    case Transport::kShm:
    case Transport::kVerbs:
      // An address with a colon is IPv6, and needs brackets: "[::1]:0".
      return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]:0")
                                          : absl::StrCat(host, ":0");
    case Transport::kUds:
      return AbstractSocket();
    case Transport::kInproc:
      return "";
  }
  return "";
}

std::string ConnectAddress(const std::string& listen_address, int port) {
  constexpr absl::string_view kAnyPort = ":0";
  if (!absl::EndsWith(listen_address, kAnyPort)) return listen_address;
  return absl::StrCat(
      listen_address.substr(0, listen_address.size() - kAnyPort.size()), ":",
      port);
}

std::shared_ptr<grpc::Channel> MakeChannel(Transport transport,
                                           const std::string& address,
                                           const std::string& device) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // A later server may reuse a port, and its channel must not inherit the
  // earlier connection or back-off.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Ignore HTTP proxies from the environment.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  std::shared_ptr<grpc::ChannelCredentials> credentials =
      grpc::InsecureChannelCredentials();
  if (const auto options = PenstockOptions(transport, device)) {
    credentials = Credentials(credentials, *options);
  }
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

absl::Status CheckPaths(Transport transport,
                        const std::vector<PathReport>& paths) {
  const absl::string_view expected = ExpectedPath(transport);
  if (expected.empty()) return absl::OkStatus();
  if (paths.empty()) {
    return absl::UnavailableError("carried by stock HTTP/2, not by Penstock");
  }
  for (const PathReport& path : paths) {
    if (path.path != expected) {
      return absl::UnavailableError(
          absl::StrCat("carried by ", path.ToString()));
    }
  }
  return absl::OkStatus();
}

}  // namespace bench
}  // namespace penstock
