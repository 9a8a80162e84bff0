#include "ps/etcd/errors.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "transport/base/printable.h"

namespace penstock::ps::etcd {
namespace {

constexpr size_t kMaxTextBytes = 300;

// The remedy for an error whose message contains a text of etcd or gRPC. The
// text is needed because etcd has few error codes.
struct Remedy {
  const char* said;
  const char* remedy;
};
constexpr Remedy kRemedies[] = {
    {"user name is empty",
     "this etcd has users: set PENSTOCK_ETCD_USER and "
     "PENSTOCK_ETCD_PASSWORD_FILE"},
    {"authentication failed",
     "check PENSTOCK_ETCD_USER and PENSTOCK_ETCD_PASSWORD_FILE"},
    {"permission denied",
     "grant the user's role readwrite on the prefix: etcdctl role "
     "grant-permission ROLE --prefix=true readwrite PREFIX"},
    {"mvcc: database space exceeded",
     "etcd's disk quota is used up: compact and defragment it, then etcdctl "
     "alarm disarm"},
    {"wrong version number", "this etcd has no TLS: unset PENSTOCK_ETCD_CA"},
    {"certificate verify failed",
     "PENSTOCK_ETCD_CA has to name who signed etcd's certificate, and the "
     "certificate must not have expired"},
    {"eer name", "etcd's certificate is for another name than this address"},
    {"Hostname Verification",
     "etcd's certificate is for another name than this address"},
    {"Socket closed",
     "if this etcd has TLS, set PENSTOCK_ETCD_CA, and PENSTOCK_ETCD_CERT and "
     "PENSTOCK_ETCD_KEY if it requires certificates"},
    {"no leader", "a majority of etcd's members is unreachable"},
    // Must be the last entry, because the texts of TLS errors also begin with
    // these words.
    {"failed to connect", "is etcd running at this address?"},
};

}  // namespace

absl::Status Explain(absl::string_view endpoint, absl::string_view operation,
                     const grpc::Status& status) {
  std::string text =
      absl::StrCat("etcd at ", endpoint, ": ", operation, ": ",
                   base::Printable(status.error_message(), kMaxTextBytes));
  for (const Remedy& remedy : kRemedies) {
    if (absl::StrContains(status.error_message(), remedy.said)) {
      absl::StrAppend(&text, " (", remedy.remedy, ")");
      break;
    }
  }
  auto code = static_cast<absl::StatusCode>(status.error_code());
  // Recognises an unknown user, which etcd reports as INVALID_ARGUMENT.
  if (absl::StrContains(status.error_message(), "user name is empty") ||
      absl::StrContains(status.error_message(), "authentication failed")) {
    code = absl::StatusCode::kUnauthenticated;
  }
  return absl::Status(code, text);
}

bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

bool IsFinal(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status) ||
         absl::IsNotFound(status);
}

bool IsTokenRefused(const grpc::Status& status) {
  return absl::StrContains(status.error_message(), "invalid auth token") ||
         absl::StrContains(status.error_message(),
                           "revision of auth store is old");
}

bool HasNoUsers(const grpc::Status& status) {
  return absl::StrContains(status.error_message(),
                           "authentication is not enabled");
}

}  // namespace penstock::ps::etcd
