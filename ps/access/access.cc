#include "ps/access/access.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpc/grpc_security_constants.h"
#include "grpcpp/security/auth_context.h"
#include "transport/base/log.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

// The key of the secret in the metadata. Lower case, because gRPC passes keys
// in lower case, as HTTP/2 requires.
constexpr char kAuthorization[] = "authorization";
constexpr size_t kPeerBytes = 128;

struct Property {
  const char* name;
  NameKind kind;
};
constexpr Property kProperties[] = {
    {GRPC_PEER_URI_PROPERTY_NAME, NameKind::kUri},
    {GRPC_PEER_DNS_PROPERTY_NAME, NameKind::kDns},
    {GRPC_X509_CN_PROPERTY_NAME, NameKind::kCommonName}};

// Returns true if the peer has shown a certificate. gRPC sets the checked
// property for any certificate, and only with TLS.
bool HasCertificate(const grpc::AuthContext& peer) {
  return !peer.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME).empty();
}

std::vector<Identity> NamesOf(const grpc::AuthContext& peer) {
  std::vector<Identity> names;
  for (const Property& property : kProperties) {
    for (const grpc::string_ref& value :
         peer.FindPropertyValues(property.name)) {
      // Skips an empty common name, which gRPC reports if the certificate has
      // none.
      if (property.kind == NameKind::kCommonName && value.empty()) continue;
      names.push_back({property.kind, std::string(value.data(), value.size())});
    }
  }
  return names;
}

// Returns the facts about a call's caller. The result refers to memory of
// `context`.
Caller CallerOf(const grpc::ServerContextBase& context) {
  Caller caller;
  const std::shared_ptr<const grpc::AuthContext> peer = context.auth_context();
  if (peer != nullptr && HasCertificate(*peer)) {
    caller.has_certificate = true;
    caller.names = NamesOf(*peer);
  }
  const auto [first, last] =
      context.client_metadata().equal_range(kAuthorization);
  for (auto each = first; each != last; ++each) {
    caller.authorization.emplace_back(each->second.data(), each->second.size());
  }
  return caller;
}

Permission MostOf(const AccessPolicy& policy) {
  Permission most = Permission::kRead;
  for (const Rule& rule : policy.rules) most = std::max(most, rule.permission);
  return most;
}

void LogPolicy(const AccessPolicy& policy, bool encrypted) {
  if (!policy.secrets.empty() && !encrypted) {
    base::LogWarning(
        "access: without TLS, the secret goes over the network as it is. That "
        "keeps out who is on no network between the peers, and jobs that have "
        "a wrong address; against others use TLS (--ca, --cert, --key)");
  }
  if (policy.rules.empty()) return;
  base::LogInfo(absl::StrCat("access: by the ", policy.rules.size(),
                             " rules of ",
                             base::Printable(policy.path, kPeerBytes)));
  if (MostOf(policy) == Permission::kAdminister) return;
  base::LogWarning(absl::StrCat("access: nobody may administer: no line of ",
                                base::Printable(policy.path, kPeerBytes),
                                " permits it"));
  if (MostOf(policy) == Permission::kTrain) return;
  base::LogWarning(absl::StrCat("access: nobody may train: no line of ",
                                base::Printable(policy.path, kPeerBytes),
                                " permits it"));
}

}  // namespace

Access::Access(Policy policy, bool encrypted) : encrypted_(encrypted) {
  Replace(std::move(policy));
}

void Access::Replace(Policy policy) {
  LogPolicy(policy, encrypted_);
  auto next = std::make_shared<const Policy>(std::move(policy));
  absl::MutexLock lock(&mu_);
  policy_.swap(next);
}

std::shared_ptr<const Access::Policy> Access::policy() const {
  absl::MutexLock lock(&mu_);
  return policy_;
}

absl::Status Access::Check(const grpc::ServerContextBase& context,
                           Permission permission) {
  const std::shared_ptr<const Policy> policy = this->policy();
  if (policy->rules.empty() && policy->secrets.empty()) {
    return absl::OkStatus();
  }
  absl::Status may = Decide(*policy, CallerOf(context), permission);
  if (!may.ok()) Refuse(context, permission, may);
  return may;
}

void Access::Refuse(const grpc::ServerContextBase& context,
                    Permission permission, const absl::Status& why) {
  refused_[static_cast<size_t>(permission)].fetch_add(
      1, std::memory_order_relaxed);
  const std::string line =
      absl::StrCat("access: ", base::Printable(context.peer(), kPeerBytes),
                   ": ", why.message());
  absl::MutexLock lock(&mu_);
  log_.Info(line);
}

uint64_t Access::refused(Permission permission) const {
  return refused_[static_cast<size_t>(permission)].load(
      std::memory_order_relaxed);
}

}  // namespace penstock::ps
