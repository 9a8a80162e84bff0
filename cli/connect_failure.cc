#include "cli/connect_failure.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cli/what_listens.h"
#include "transport/base/printable.h"

namespace penstock::cli {
namespace {

constexpr size_t kMaxTextBytes = 400;

struct Meaning {
  const char* part;  // a part of gRPC's text
  const char* means;
  const char* remedy;
  // The remedy if the client uses TLS already, or null if it is the same.
  const char* remedy_with_tls = nullptr;
};

// The text with which gRPC reports several failures, for example a failure to
// make a subchannel.
constexpr char kNoAddress[] = "empty address list";

constexpr char kClosed[] = "the server closed the connection";
constexpr char kMayUseTls[] = "if the server uses TLS, give --tls or --ca=FILE";
// A server that refuses a client's certificate, or the lack of one, closes the
// connection after TLS's handshake.
constexpr char kMayAskForCertificate[] =
    "if the server asks for certificates, give --cert=FILE and --key=FILE, "
    "with a certificate that its authority has signed";
constexpr char kUntrusted[] = "the server's certificate is not trusted";
// gRPC does not say why a certificate was refused.
constexpr char kFindSigner[] =
    "give --ca=FILE, with the certificate of its signer; or has the server's "
    "certificate expired?";

// Failures to reach anything at the target.
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
    {"CERTIFICATE_VERIFY_FAILED", kUntrusted, kFindSigner},
    {"certificate verify failed", kUntrusted, kFindSigner},
    {kNoAddress, "TLS cannot begin here",
     "does the system have authorities? --ca=FILE names others"},
    {"http1.x server", "a web server listens there, and no gRPC server",
     "is it the right port?"},
    {"header with status", "a web server listens there, and no gRPC server",
     "is it the right port?"},
    {"eer name", "the certificate is for another name",
     "give --server-name=NAME, with the name in the certificate"},
    {"Socket closed", kClosed, kMayUseTls, kMayAskForCertificate},
    {"onnection reset", kClosed, kMayUseTls, kMayAskForCertificate},
    {"ndpoint closing", kClosed, kMayUseTls, kMayAskForCertificate},
};

// The timeout for identifying the program that listens at the target.
constexpr absl::Duration kLookLimit = absl::Seconds(1);

// Removes repetition from gRPC's text: "failed to connect to all addresses;
// last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host:
// Connection refused".
std::string Shortened(absl::string_view text) {
  const size_t last = text.rfind("last error: ");
  if (last != text.npos) text.remove_prefix(last + 12);
  absl::ConsumePrefix(&text, "UNKNOWN: ");
  absl::ConsumePrefix(&text, "UNAVAILABLE: ");
  return base::Printable(text, kMaxTextBytes);
}

std::string Said(const Meaning& meaning, absl::string_view text,
                 bool with_tls) {
  const bool has_other = with_tls && meaning.remedy_with_tls != nullptr;
  return absl::StrCat(meaning.means, " (", Shortened(text), "); ",
                      has_other ? meaning.remedy_with_tls : meaning.remedy);
}

}  // namespace

std::string ExplainConnectFailure(const std::string& server,
                                  const grpc::Status& status,
                                  absl::Duration timeout, bool with_tls) {
  const std::string& text = status.error_message();
  const std::string name = base::Printable(server, kMaxTextBytes);
  const std::string begin = absl::StrCat("cannot reach ", name, ": ");
  for (const Meaning& each : kUnreachable) {
    if (!absl::StrContains(text, each.part)) continue;
    return absl::StrCat(begin, Said(each, text, with_tls));
  }
  // Finds out which program listens there, because gRPC discards the answers of
  // servers that do not speak HTTP/2.
  const std::string listens =
      WhatListensAt(server, std::min(timeout, kLookLimit), with_tls);
  if (!listens.empty()) return absl::StrCat(begin, listens);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::StrCat(name, " did not answer within ",
                        absl::FormatDuration(timeout),
                        ": is it a gRPC server, with", with_tls ? "" : "out",
                        " TLS, and does a firewall let it through?");
  }
  for (const Meaning& each : kMeanings) {
    if (!absl::StrContains(text, each.part)) continue;
    if (each.part == kNoAddress && !with_tls) continue;
    return absl::StrCat(begin, Said(each, text, with_tls));
  }
  return absl::StrCat(begin, Shortened(text));
}

}  // namespace penstock::cli
