#include "bench/rpc/setup/transports.h"

#include <unistd.h>

#include <atomic>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/rpc/setup/identity.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "grpcpp/version_info.h"

namespace penstock {
namespace bench {
namespace {

// True for gRPC 1.60 and later (docs/current_grpc.md). Over TCP, Penstock then
// speaks HTTP/2, and there is no path that could be required.
constexpr bool kIsEventEngine =
    GRPC_CPP_VERSION_MAJOR > 1 || GRPC_CPP_VERSION_MINOR >= 60;

Options Require(Fabric fabric) {
  Options options;
  options.policy = Policy::kRequire;
  options.fabrics = std::vector<Fabric>{fabric};
  return options;
}

Options OverTcp() {
  Options options = Require(Fabric::kTcp);
  if (kIsEventEngine) options.policy = Policy::kPrefer;
  return options;
}

// Returns a unique name of an abstract UNIX socket, from this process's id and
// a count.
std::string AbstractSocket() {
  static std::atomic<int> count{0};
  return absl::StrCat("unix-abstract:penstock-bench-", getpid(), "-",
                      count.fetch_add(1));
}

// Returns the PathReport::path of `transport`'s connections; empty if the
// client is stock gRPC.
absl::string_view ExpectedPath(Transport transport) {
  switch (transport) {
    case Transport::kTcp:
    case Transport::kUds:
    case Transport::kInproc:
    case Transport::kTls:
    case Transport::kPenstockServer:
      return "";
    case Transport::kPenstockTcp:
    case Transport::kPenstockTls:
      return kIsEventEngine ? "http2" : "tcp";
    case Transport::kShm:
    case Transport::kShmTls:
      return "shm";
    case Transport::kVerbs:
      return "verbs";
    case Transport::kPenstockClient:
      return "http2";
  }
  return "";
}

absl::optional<Options> RequireVerbs(const std::string& device) {
  Options options = Require(Fabric::kVerbs);
  // Set the device. If `device` is empty, the environment selects one.
  if (!device.empty()) options.verbs_device = device;
  return options;
}

// Returns the settings of the side `own`, whose peer is stock gRPC.
absl::optional<Options> PreferOn(Side own, Side side) {
  if (own != side) return absl::nullopt;
  Options options;
  options.policy = Policy::kPrefer;
  options.fabrics = std::vector<Fabric>{Fabric::kTcp};
  return options;
}

std::shared_ptr<grpc::ChannelCredentials> StockCredentials(
    Transport transport, const std::string& identity) {
  if (!HasTls(transport)) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = identity;
  return grpc::SslCredentials(options);
}

}  // namespace

absl::optional<Options> PenstockOptions(Transport transport, Side side,
                                        const std::string& device) {
  switch (transport) {
    case Transport::kTcp:
    case Transport::kUds:
    case Transport::kInproc:
    case Transport::kTls:
      return absl::nullopt;
    case Transport::kPenstockTcp:
    case Transport::kPenstockTls:
      return OverTcp();
    case Transport::kShm:
    case Transport::kShmTls:
      return Require(Fabric::kShm);
    case Transport::kVerbs:
      return RequireVerbs(device);
    case Transport::kPenstockClient:
      return PreferOn(Side::kClient, side);
    case Transport::kPenstockServer:
      return PreferOn(Side::kServer, side);
  }
  return absl::nullopt;
}

std::string ListenAddress(Transport transport, const std::string& host) {
  if (transport == Transport::kUds) return AbstractSocket();
  if (transport == Transport::kInproc) return "";
  // An address with a colon is IPv6, and needs brackets: "[::1]:0".
  return absl::StrContains(host, ':') ? absl::StrCat("[", host, "]:0")
                                      : absl::StrCat(host, ":0");
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
                                           const std::string& device,
                                           const std::string& identity) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  // Give the channel its own connection. A later server may reuse a port, and
  // must not inherit the earlier connection or back-off.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Ignore HTTP proxies from the environment.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (HasTls(transport)) arguments.SetSslTargetNameOverride(kIdentityName);
  std::shared_ptr<grpc::ChannelCredentials> credentials =
      StockCredentials(transport, identity);
  if (const auto options = PenstockOptions(transport, Side::kClient, device)) {
    credentials = Credentials(credentials, *options);
  }
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

std::shared_ptr<grpc::ServerCredentials> ListenCredentials(
    Transport transport, const std::string& identity) {
  if (!HasTls(transport)) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back({identity, identity});
  return grpc::SslServerCredentials(options);
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
