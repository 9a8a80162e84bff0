#include "python/ps_connect.h"

#include <limits>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "penstock/penstock.h"
#include "ps/access/send_secret.h"
#include "ps/client/checkpoint.h"
#include "python/arguments.h"
#include "python/errors.h"
#include "python/paths.h"
#include "python/pending.h"
#include "python/tensor_object.h"
#include "tensor_service/allocator.h"
#include "tensor_service/status.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// Makes tensors of this process sent and received in place.
void UsePool() {
  static std::once_flag once;
  std::call_once(once, [] { tensor::SetDefaultAllocator(Pool()); });
}

ps::TlsFiles TlsOf(py::handle tls) {
  ps::TlsFiles files;
  if (tls.is_none()) return files;
  if (!py::hasattr(tls, "ca") || !py::hasattr(tls, "cert") ||
      !py::hasattr(tls, "key")) {
    ThrowType(tls, "tls", "ps.TlsFiles(ca, cert, key)");
  }
  files.ca = PathOf(tls.attr("ca"), "tls: ca");
  files.cert = PathOf(tls.attr("cert"), "tls: cert");
  files.key = PathOf(tls.attr("key"), "tls: key");
  return files;
}

}  // namespace

PsServers PsServersOf(const py::dict& arguments) {
  PsServers servers;
  const py::object addresses = arguments["servers"];
  servers.addresses = StrsOf(addresses, "servers");
  if (servers.addresses.empty()) {
    ThrowValue(addresses, "servers",
               "the address of each, such as \"ps0:7000\"");
  }
  servers.tls = TlsOf(arguments["tls"]);
  servers.secret = PathOf(arguments["secret"], "secret");
  servers.stock = FlagOf(arguments["stock"], "stock");
  return servers;
}

absl::StatusOr<ps::Router::Connect> Connector(const PsServers& servers) {
  absl::StatusOr<std::string> secret = ps::ReadSecretToSend(servers.secret);
  if (!secret.ok()) return secret.status();
  auto security = ps::ClientSecurity(servers.tls);
  if (!security.ok()) return security.status();
  Options options;
  if (servers.stock) {
    options.policy = Policy::kOff;
  } else {
    UsePool();
  }
  return [options, security = *security,
          secret = *secret](const std::string& address) {
    auto channel = grpc::experimental::CreateCustomChannelWithInterceptors(
        address, Credentials(security, options), tensor::UnlimitedMessages(),
        ps::SendSecret(secret));
    Remember(channel);
    return channel;
  };
}

absl::StatusOr<ps::TrainingConnection::Channels> Connect(
    const PsServers& servers) {
  const auto connect = Connector(servers);
  if (!connect.ok()) return connect.status();
  ps::TrainingConnection::Channels channels;
  channels.reserve(servers.addresses.size());
  for (const std::string& address : servers.addresses) {
    channels.push_back((*connect)(address));
  }
  return channels;
}

py::tuple TakeCheckpoint(
    std::shared_ptr<const ps::TrainingConnection> connection,
    py::handle incremental, py::handle keep, py::handle timeout) {
  ps::CheckpointOptions options;
  options.incremental = FlagOf(incremental, "incremental");
  options.keep = WholeOf(keep, "keep", std::numeric_limits<uint64_t>::max());
  options.timeout = SecondsOf(timeout, "timeout");
  const ps::CheckpointResult result =
      ValueOf(RunInterruptibly([connection = std::move(connection), options] {
        return ps::TakeCheckpoint(*connection, options);
      }));
  py::list removed;
  for (const uint64_t step : result.removed_steps) removed.append(step);
  return py::make_tuple(result.step, result.is_incremental, result.bytes,
                        py::tuple(removed));
}

}  // namespace penstock::python
