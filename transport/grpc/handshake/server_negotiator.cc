#include "transport/grpc/handshake/server_negotiator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/core/lib/gprpp/status_helper.h"
#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/base/limited_log.h"
#include "transport/base/log.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/tcp/stripes/greeting.h"
#include "transport/fabric/tcp/stripes/listener.h"
#include "transport/grpc/channel_limits.h"
#include "transport/grpc/handshake/privacy.h"
#include "transport/grpc/polling/plain_tcp.h"
#include "transport/metrics/registry.h"
#include "transport/settings/tcp_sockets.h"
#include "transport/wire/frame.h"
#include "transport/wire/http2_settings.h"

namespace penstock {
namespace core {
namespace {

constexpr wire::VersionRange kVersions = {wire::kOldestVersion, wire::kVersion};

enum class Preface { kNeedMore, kYes, kNo };

Preface InspectPreface(absl::string_view bytes) {
  const absl::string_view preface(wire::kHttp2Preface,
                                  wire::kHttp2PrefaceBytes);
  const size_t known = std::min(bytes.size(), preface.size());
  if (bytes.substr(0, known) != preface.substr(0, known)) return Preface::kNo;
  return known < preface.size() ? Preface::kNeedMore : Preface::kYes;
}

// Returns true if sessions may have more than one socket.
bool HasStripes() {
  static const bool has = ResolveTcpSockets().value_or(1) > 1;
  return has;
}

void CountHttp2(metrics::Reason reason) {
  metrics::Registry::Get()->Count(
      metrics::Metric::kPathDecisions,
      {metrics::Role::kServer, metrics::Path::kHttp2, reason});
}

void CountRefused(metrics::Refusal reason) {
  metrics::Registry::Get()->Count(metrics::Metric::kRefused, {reason});
}

}  // namespace

void ServerNegotiator::OnReadLocked() {
  fabric::stripes::Greeting greeting;
  const fabric::stripes::Verdict stripe =
      HasStripes() ? fabric::stripes::InspectGreeting(received(), &greeting)
                   : fabric::stripes::Verdict::kOther;
  if (stripe == fabric::stripes::Verdict::kGreeting &&
      IsPlainTcp(*args()->endpoint)) {
    return GiveSocketLocked([greeting](base::UniqueFd socket) {
      fabric::stripes::GiveStripe(std::move(socket), greeting);
    });
  }
  if (stripe == fabric::stripes::Verdict::kNeedMore) return ReadLocked();
  switch (InspectPreface(received())) {
    case Preface::kNeedMore:
      return ReadLocked();
    case Preface::kNo:
      return LeaveToHttp2Locked(received());  // HTTP/2 reports the error
    case Preface::kYes:
      break;
  }
  wire::VersionRange offered;
  size_t frame_bytes = 0;
  const absl::string_view rest =
      absl::string_view(received()).substr(wire::kHttp2PrefaceBytes);
  const wire::SettingsVerdict verdict =
      wire::InspectSettings(rest, &offered, &frame_bytes);
  if (verdict == wire::SettingsVerdict::kNeedMore) return ReadLocked();
  version_ = verdict == wire::SettingsVerdict::kPenstock
                 ? wire::ChooseVersion(kVersions, offered)
                 : 0;
  if (version_ == 0) {
    if (settings_.policy == Policy::kRequire) return RefuseHttp2Locked();
    CountHttp2(metrics::Reason::kStockPeer);
    return LeaveToHttp2Locked(received());
  }
  half_open_ = paths::HalfOpen::Get()->Enter();
  if (half_open_ == nullptr) return AnswerFloodLocked();
  consumed_ = wire::kHttp2PrefaceBytes + frame_bytes;
  WriteLocked(wire::PenstockSettingsFrame({version_, version_}));
}

void ServerNegotiator::RefuseHttp2Locked() {
  const std::string text = absl::StrCat(
      "connection from ", grpc_endpoint_get_peer(args()->endpoint),
      " refused: Penstock policy is \"", settings_.ToString(),
      "\", but the peer does not speak Penstock (PENSTOCK_POLICY=prefer would "
      "serve it over HTTP/2)");
  base::WarnOfStranger(text);
  CountRefused(metrics::Refusal::kStockPeer);
  FinishLocked(GRPC_ERROR_CREATE(text));
}

// Serves the client over HTTP/2, so that a flood does not lock out honest
// clients. Refuses the client if the policy requires Penstock.
void ServerNegotiator::AnswerFloodLocked() {
  const bool refuses = settings_.policy == Policy::kRequire;
  const std::string text =
      absl::StrCat("connection from ", grpc_endpoint_get_peer(args()->endpoint),
                   refuses ? " refused" : " goes on over HTTP/2",
                   ": too many others are being negotiated");
  base::WarnOfStranger(text);
  if (!refuses) {
    CountHttp2(metrics::Reason::kFlood);
    return LeaveToHttp2Locked(received());
  }
  CountRefused(metrics::Refusal::kFlood);
  FinishLocked(GRPC_ERROR_CREATE(text));
}

void ServerNegotiator::OnWrittenLocked() {
  Transport::Config config;
  config.version = version_;
  config.half_open = std::move(half_open_);
  config.settings = settings_;
  config.limits = ReadChannelLimits(args()->args, /*is_client=*/false);
  config.is_private = PromisesPrivacy(args()->args);
  config.may_open_sockets = IsPlainTcp(*args()->endpoint);
  if (settings_.MayExpose()) LowerSecurityLevel(args()->args);
  const grpc_core::ChannelArgs channel_args = args()->args;
  config.security =
      channel_args.GetObjectRef<grpc_core::channelz::SocketNode::Security>();
  Transport* transport = TakeOverLocked(config, consumed_, nullptr);
  Ref().release();
  // Sets up the transport outside the lock, because the server takes locks of
  // its own.
  grpc_core::ExecCtx::Run(
      DEBUG_LOCATION,
      grpc_core::NewClosure([this, transport, channel_args](grpc_error_handle) {
        SetUp(transport, channel_args);
        Unref();
      }),
      absl::OkStatus());
}

void ServerNegotiator::SetUp(Transport* transport,
                             const grpc_core::ChannelArgs& channel_args) {
  // SetupTransport() takes ownership of the transport, even if it fails.
  const bool has_channelz = server_->channelz_node() != nullptr;
  const grpc_error_handle error = server_->SetupTransport(
      transport, nullptr, channel_args,
      has_channelz ? transport->socket_node() : nullptr);
  if (error.ok()) {
    transport->Start();
  } else {
    base::LogError(absl::StrCat("a connection could not be set up: ",
                                grpc_core::StatusToString(error)));
  }
  grpc_core::MutexLock lock(mu());
  FinishLocked(absl::OkStatus());
}

}  // namespace core
}  // namespace penstock
