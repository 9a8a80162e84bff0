#include "transport/grpc/handshake/client_negotiator.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "src/core/lib/transport/http_connect_handshaker.h"
#include "transport/base/log.h"
#include "transport/grpc/channel_limits.h"
#include "transport/grpc/handshake/privacy.h"
#include "transport/grpc/handshake/resumed_endpoint.h"
#include "transport/grpc/polling/plain_tcp.h"
#include "transport/metrics/registry.h"
#include "transport/wire/frame.h"
#include "transport/wire/http2_settings.h"

namespace penstock {
namespace core {
namespace {

constexpr wire::VersionRange kVersions = {wire::kOldestVersion, wire::kVersion};

// Returns true if a further socket to the endpoint's peer would be equivalent
// to the endpoint's socket. Not so for the program's own endpoints, and with
// socket mutators and proxies.
bool MayOpenSockets(const grpc_endpoint& endpoint,
                    const grpc_core::ChannelArgs& args) {
  return IsPlainTcp(endpoint) &&
         args.GetVoidPointer(GRPC_ARG_SOCKET_MUTATOR) == nullptr &&
         !args.GetString(GRPC_ARG_HTTP_CONNECT_SERVER).has_value();
}

}  // namespace

constexpr const char* ClientNegotiator::kTransportArg;

void ClientNegotiator::BeginLocked() {
  WriteLocked(std::string(wire::kHttp2Preface, wire::kHttp2PrefaceBytes) +
              wire::PenstockSettingsFrame(kVersions));
}

void ClientNegotiator::OnReadLocked() {
  wire::VersionRange chosen;
  size_t frame_bytes = 0;
  switch (wire::InspectSettings(received(), &chosen, &frame_bytes)) {
    case wire::SettingsVerdict::kNeedMore:
      return ReadLocked();
    case wire::SettingsVerdict::kOther:
      return FallBackLocked();
    case wire::SettingsVerdict::kPenstock:
      break;
  }
  if (wire::ChooseVersion(kVersions, chosen) != chosen.min ||
      chosen.min != chosen.max) {
    metrics::Registry::Get()->Count(metrics::Metric::kRefused,
                                    {metrics::Refusal::kVersion});
    return FinishLocked(GRPC_ERROR_CREATE(
        absl::StrCat("the peer chose Penstock protocol version ", chosen.max,
                     ", which was not offered")));
  }
  TakeOverClientLocked(chosen.min, frame_bytes);
}

void ClientNegotiator::TakeOverClientLocked(uint8_t version, size_t consumed) {
  Transport::Config config;
  config.is_client = true;
  config.version = version;
  config.settings = settings_;
  config.limits = ReadChannelLimits(args()->args, /*is_client=*/true);
  config.is_private = PromisesPrivacy(args()->args);
  config.may_open_sockets = MayOpenSockets(*args()->endpoint, args()->args);
  if (settings_.MayExpose()) LowerSecurityLevel(args()->args);
  config.security =
      args()->args.GetObjectRef<grpc_core::channelz::SocketNode::Security>();
  Ref().release();  // released after OnSettled()
  opened_ = TakeOverLocked(config, consumed, [this](const absl::Status& s) {
    OnSettled(s);
    Unref();
  });
  Transport* transport = opened_;
  // Keeps the transport alive until Start() returns, because a shutdown may
  // drop all other references.
  transport->Ref();
  // Starts without the lock, because the transport may report its result within
  // Start().
  grpc_core::ExecCtx::Run(DEBUG_LOCATION,
                          grpc_core::NewClosure([transport](grpc_error_handle) {
                            transport->Start();
                            transport->Unref();
                          }),
                          absl::OkStatus());
}

void ClientNegotiator::OnSettled(const absl::Status& status) {
  grpc_core::MutexLock lock(mu());
  Transport* transport = std::exchange(opened_, nullptr);
  if (!status.ok()) {
    transport->Unref();
    FinishLocked(GRPC_ERROR_CREATE(std::string(status.message())));
    return;
  }
  static const grpc_arg_pointer_vtable vtable = {
      [](void* transport) { return transport; }, [](void*) {},
      [](void* a, void* b) { return grpc_core::QsortCompare(a, b); }};
  args()->args = args()->args.Set(
      kTransportArg, grpc_core::ChannelArgs::Pointer(transport, &vtable));
  FinishLocked(absl::OkStatus());
}

void ClientNegotiator::FallBackLocked() {
  if (settings_.policy == Policy::kRequire) {
    metrics::Registry::Get()->Count(metrics::Metric::kRefused,
                                    {metrics::Refusal::kStockPeer});
    return FinishLocked(GRPC_ERROR_CREATE(absl::StrCat(
        "Penstock policy is \"", settings_.ToString(),
        "\", but the peer does not speak Penstock (PENSTOCK_POLICY=prefer "
        "would fall back to HTTP/2)")));
  }
  std::string rest;
  args()->endpoint = NewResumedEndpoint(args()->endpoint, received(), &rest);
  LeaveToHttp2Locked(rest);
}

void ClientNegotiator::ReportHttp2(const std::string& peer) {
  metrics::Registry::Get()->Count(
      metrics::Metric::kPathDecisions,
      {metrics::Role::kClient, metrics::Path::kHttp2,
       metrics::Reason::kStockPeer});
  base::LogInfo(absl::StrCat(
      "connection to ", peer,
      ": http2; not better because the peer does not speak Penstock"));
}

}  // namespace core
}  // namespace penstock
