#include "cli/target.h"

#include <stdlib.h>  // unsetenv

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "cli/text/units.h"
#include "cli/what_listens.h"
#include "transport/base/printable.h"
#include "transport/settings/settings.h"

namespace penstock::cli {
namespace {

constexpr size_t kMaxTextBytes = 400;
// One port and two files, which are the server's where a probe runs in its
// server's environment.
constexpr char kOfServers[][32] = {"PENSTOCK_METRICS", "PENSTOCK_TRACE",
                                   "PENSTOCK_RECORD"};
constexpr char kSchemes[][16] = {
    "unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:", "xds:"};

// Returns what is wrong with HOST:PORT, if something is.
absl::Status CheckHostAndPort(absl::string_view name) {
  const auto wrong = [&](absl::string_view what, absl::string_view instead) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", base::Printable(name, kMaxTextBytes), "\" ", what,
        ": use HOST:PORT, such as ", base::Printable(instead, kMaxTextBytes)));
  };
  const size_t scheme = name.find("://");
  if (scheme != name.npos) {
    return wrong("is a URL", name.substr(scheme + 3));
  }
  const size_t colon = name.rfind(':');
  const absl::string_view host = name.substr(0, colon);
  if (name.empty() || host.empty()) return wrong("has no host", "ps0:50051");
  if (name.front() != '[' && absl::StrContains(host, ':')) {
    return wrong("has an IPv6 address without brackets",
                 absl::StrCat("[", host, "]:50051"));
  }
  if (colon == name.npos || name.back() == ']') {
    return wrong("has no port", absl::StrCat(name, ":50051"));
  }
  int port = 0;
  if (!absl::SimpleAtoi(name.substr(colon + 1), &port) || port < 1 ||
      port > 65535) {
    return wrong("has a port that is not 1 to 65535",
                 absl::StrCat(host, ":50051"));
  }
  return absl::OkStatus();
}

bool HasScheme(absl::string_view name) {
  for (const char* scheme : kSchemes) {
    if (absl::StartsWith(name, scheme)) return true;
  }
  return false;
}

// "http2" stands for stock gRPC.
absl::Status ParseFabrics(const std::string& text, Options* options) {
  if (text == "http2") {
    options->policy = Policy::kOff;
    return absl::OkStatus();
  }
  std::vector<Fabric> fabrics;
  for (absl::string_view name : absl::StrSplit(text, ',')) {
    const size_t before = fabrics.size();
    for (Fabric each : {Fabric::kShm, Fabric::kVerbs, Fabric::kTcp}) {
      if (name == FabricName(each)) fabrics.push_back(each);
    }
    if (fabrics.size() == before) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--fabrics: \"", name,
          "\" is no fabric: use a list of shm, verbs and tcp, or http2"));
    }
  }
  options->fabrics = fabrics;
  // Of the values by themselves nothing else can be wrong than repetition.
  return ResolveSettings(*options).status();
}

struct Meaning {
  const char* part;  // of gRPC's text
  const char* means;
  const char* remedy;
};

// Of a subchannel that could not be made, too.
constexpr char kNoAddress[] = "empty address list";

// Failures where nobody is there to be asked.
constexpr Meaning kUnreachable[] = {
    {"onnection refused", "nothing listens there",
     "is the server running, on that port and address?"},
    {"DNS resolution failed", "the name is unknown",
     "check its spelling, or use the IP address"},
    {"Domain name not found", "the name is unknown",
     "check its spelling, or use the IP address"},
    {"No such file", "there is no such socket", "check the path"},
    {"etwork is unreachable", "no route leads there", "see: ip route"},
    {"o route to host", "no route leads there, or a firewall refuses",
     "see: ip route"},
};

constexpr Meaning kMeanings[] = {
    {"WRONG_VERSION_NUMBER", "the server does not speak TLS",
     "leave out --tls, --ca, --cert and --key"},
    {"wrong version number", "the server does not speak TLS",
     "leave out --tls, --ca, --cert and --key"},
    {"CERTIFICATE_VERIFY_FAILED", "the server's certificate is not trusted",
     "--ca=FILE names who signed it"},
    {"certificate verify failed", "the server's certificate is not trusted",
     "--ca=FILE names who signed it"},
    {kNoAddress, "TLS cannot begin here",
     "has the system authorities? --ca=FILE names others"},
    {"http1.x server", "what listens there is no gRPC server, but a web server",
     "is it the right port?"},
    {"header with status",
     "what listens there is no gRPC server, but a web server",
     "is it the right port?"},
    {"eer name", "the certificate is for another name",
     "--server-name=NAME is the name in it"},
    {"Socket closed", "the server closed the connection",
     "if it speaks TLS: --tls, or --ca=FILE"},
    {"onnection reset", "the server closed the connection",
     "if it speaks TLS: --tls, or --ca=FILE"},
    {"ndpoint closing", "the server closed the connection",
     "if it speaks TLS: --tls, or --ca=FILE"},
};

// The time limit for whatever listens at the target to say what it is.
constexpr absl::Duration kLookLimit = absl::Seconds(1);

// gRPC repeats itself: "failed to connect to all addresses; last error:
// UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection
// refused".
std::string Shortened(absl::string_view text) {
  const size_t last = text.rfind("last error: ");
  if (last != text.npos) text.remove_prefix(last + 12);
  absl::ConsumePrefix(&text, "UNKNOWN: ");
  absl::ConsumePrefix(&text, "UNAVAILABLE: ");
  return base::Printable(text, kMaxTextBytes);
}

std::string Said(const Meaning& meaning, absl::string_view text) {
  return absl::StrCat(meaning.means, " (", Shortened(text), "); ",
                      meaning.remedy);
}

}  // namespace

absl::Status CheckTarget(absl::string_view name) {
  return HasScheme(name) ? absl::OkStatus() : CheckHostAndPort(name);
}

void Target::Declare(CLI::App* app, bool is_required) {
  option_ = app->add_option("target", name_,
                            "the server, as gRPC names it: ps0:50051, "
                            "unix:/run/ps.sock");
  option_->type_name("TARGET")->required(is_required);
  app->add_option("--fabrics", fabrics_,
                  "which fabrics may carry it, best first: shm,verbs,tcp; or "
                  "http2, for stock gRPC")
      ->type_name("LIST");
  app->add_option("-W,--timeout", timeout_text_,
                  "how long to wait for each answer (default 5s)")
      ->type_name("TIME");
  app->add_flag("--tls", tls_, "use TLS, with the system's authorities");
  app->add_option("--ca", files_.ca,
                  "use TLS, and trust whom this PEM file names")
      ->type_name("FILE");
  app->add_option("--cert", files_.cert, "show this certificate (PEM)")
      ->type_name("FILE");
  app->add_option("--key", files_.key, "its private key (PEM)")
      ->type_name("FILE");
  app->add_option("--server-name", server_name_,
                  "the name that is in the server's certificate")
      ->type_name("NAME");
}

absl::Status Target::Check() {
  if (option_->count() > 0) {
    absl::Status status = CheckTarget(name_);
    if (!status.ok()) return status;
  }
  if (!server_name_.empty() && !WithTls()) {
    return absl::InvalidArgumentError(
        "--server-name is for TLS: give --tls, or --ca=FILE, too");
  }
  const absl::StatusOr<absl::Duration> timeout = ParseDuration(timeout_text_);
  if (!timeout.ok() || *timeout == absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--timeout: ", timeout.ok() ? "must be above 0"
                                                 : timeout.status().message()));
  }
  timeout_ = *timeout;
  if (!fabrics_.empty()) {
    absl::Status status = ParseFabrics(fabrics_, &options_);
    if (!status.ok()) return status;
  }
  return files_.Check();
}

std::string Target::Name() const {
  return base::Printable(name_, kMaxTextBytes);
}

bool Target::WithTls() const {
  return tls_ || !files_.ca.empty() || !files_.cert.empty();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Target::Security()
    const {
  if (!WithTls()) return grpc::InsecureChannelCredentials();
  const absl::StatusOr<TlsTexts> texts = files_.Read();
  if (!texts.ok()) return texts.status();
  return grpc::SslCredentials({texts->ca, texts->key, texts->cert});
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> Target::Open() const {
  // Before gRPC has threads that could read the environment.
  for (const char* variable : kOfServers) unsetenv(variable);
  const auto security = Security();
  if (!security.ok()) return security.status();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  // Compressed, a few bytes of a stranger's could be gigabytes.
  arguments.SetInt("penstock.max_decompressed_bytes", 64 << 20);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  if (!server_name_.empty()) {
    arguments.SetSslTargetNameOverride(server_name_);
  }
  return grpc::CreateCustomChannel(name_, Credentials(*security, options_),
                                   arguments);
}

std::string Target::Explain(const grpc::Status& status) const {
  const std::string& text = status.error_message();
  const std::string begin = absl::StrCat("cannot reach ", Name(), ": ");
  for (const Meaning& each : kUnreachable) {
    if (!absl::StrContains(text, each.part)) continue;
    return absl::StrCat(begin, Said(each, text));
  }
  // gRPC drops what others say.
  const std::string listens =
      WhatListensAt(name_, std::min(timeout_, kLookLimit), WithTls());
  if (!listens.empty()) return absl::StrCat(begin, listens);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::StrCat(Name(), " did not answer within ",
                        absl::FormatDuration(timeout_),
                        ": is it a gRPC server, with", WithTls() ? "" : "out",
                        " TLS, and does a firewall let it through?");
  }
  for (const Meaning& each : kMeanings) {
    if (!absl::StrContains(text, each.part)) continue;
    if (each.part == kNoAddress && !WithTls()) continue;
    return absl::StrCat(begin, Said(each, text));
  }
  return absl::StrCat(begin, Shortened(text));
}

PathReport Target::Path(grpc::Channel* channel) const {
  const std::vector<PathReport> paths = DescribePaths(*channel);
  if (paths.empty()) return PathReport();
  PathReport path = paths.front();
  // With another release of gRPC there is no peer, and the reason is that.
  if (path.path == "http2" && !path.peer.empty()) path.reason = WhyHttp2();
  path.detail = base::Printable(path.detail, kMaxTextBytes);
  path.reason = base::Printable(path.reason, kMaxTextBytes);
  return path;
}

std::string Target::WhyHttp2() const {
  if (options_.policy == Policy::kOff) {
    return "--fabrics=http2 asks for stock gRPC";
  }
  const absl::StatusOr<Settings> settings = ResolveSettings(options_);
  if (!settings.ok()) {
    return absl::StrCat("Penstock is off here: ", settings.status().message());
  }
  if (settings->policy == Policy::kOff) return "PENSTOCK_POLICY=off here";
  return "the peer does not speak Penstock";
}

}  // namespace penstock::cli
