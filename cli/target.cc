#include "cli/target.h"

#include <stdlib.h>  // unsetenv

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/connect_failure.h"
#include "transport/base/printable.h"
#include "transport/settings/settings.h"

namespace penstock::cli {
namespace {

constexpr size_t kMaxTextBytes = 400;
// The variables that name the port and the two files of a server. A probe may
// inherit the server's environment, but must not use the same port and files.
constexpr char kOfServers[][32] = {"PENSTOCK_METRICS", "PENSTOCK_TRACE",
                                   "PENSTOCK_RECORD"};
constexpr char kSchemes[][16] = {
    "unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:", "xds:"};

// Returns an error if `name` is not HOST:PORT.
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

// Parses fabrics; "http2" selects stock gRPC.
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
  // Checks the whole list. Each name was valid, so only a repetition can be
  // wrong.
  return ResolveSettings(*options).status();
}

}  // namespace

absl::Status CheckTarget(absl::string_view name) {
  return HasScheme(name) ? absl::OkStatus() : CheckHostAndPort(name);
}

void Target::Declare(CLI::App* app, bool is_required) {
  option_ = app->add_option(
      "target", name_,
      "the server, in gRPC's notation: ps0:50051, unix:/run/ps.sock");
  option_->type_name("TARGET")->required(is_required);
  app->add_option("--fabrics", fabrics_,
                  "the fabrics to use, the best first: shm,verbs,tcp; or http2 "
                  "for stock gRPC")
      ->type_name("LIST");
  client_.Declare(app);
}

absl::Status Target::Check() {
  if (option_->count() > 0) {
    absl::Status status = CheckTarget(name_);
    if (!status.ok()) return status;
  }
  if (!fabrics_.empty()) {
    absl::Status status = ParseFabrics(fabrics_, &options_);
    if (!status.ok()) return status;
  }
  return client_.Check();
}

std::string Target::Name() const {
  return base::Printable(name_, kMaxTextBytes);
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> Target::Open() const {
  // Removes the variables before gRPC starts threads, which could read the
  // environment.
  for (const char* variable : kOfServers) unsetenv(variable);
  const auto security = client_.Security();
  if (!security.ok()) return security.status();
  return grpc::CreateCustomChannel(name_, Credentials(*security, options_),
                                   client_.Arguments());
}

std::string Target::Explain(const grpc::Status& status) const {
  return ExplainConnectFailure(name_, status, client_.timeout(),
                               client_.WithTls());
}

PathReport Target::Path(grpc::Channel* channel) const {
  const std::vector<PathReport> paths = DescribePaths(*channel);
  if (paths.empty()) return PathReport();
  PathReport path = paths.front();
  // Finds the reason, unless path.reason already has it. With another release
  // of gRPC there is no peer, and path.reason says so.
  if (path.path == "http2" && !path.peer.empty()) path.reason = WhyHttp2();
  path.detail = base::Printable(path.detail, kMaxTextBytes);
  path.reason = base::Printable(path.reason, kMaxTextBytes);
  return path;
}

std::string Target::WhyHttp2() const {
  if (options_.policy == Policy::kOff) {
    return "--fabrics=http2 selects stock gRPC";
  }
  const absl::StatusOr<Settings> settings = ResolveSettings(options_);
  if (!settings.ok()) {
    return absl::StrCat("Penstock is off here: ", settings.status().message());
  }
  if (settings->policy == Policy::kOff) return "PENSTOCK_POLICY=off here";
  return "the peer does not speak Penstock";
}

}  // namespace penstock::cli
