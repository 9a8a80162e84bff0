#include "tensor_service/calls/caller.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "grpcpp/security/auth_context.h"

namespace penstock::tensor {

std::string CallerOf(const grpc::ServerContextBase& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth != nullptr && auth->IsPeerAuthenticated()) {
    std::string identity = "identity";
    for (const grpc::string_ref& part : auth->GetPeerIdentity()) {
      // Appends the length of each part. Without lengths, two different
      // certificates could result in the same text.
      absl::StrAppend(&identity, " ", part.size(), ":",
                      absl::string_view(part.data(), part.size()));
    }
    return identity;
  }
  return absl::StrCat("peer ", context.peer());
}

std::string MemberOf(const grpc::ServerContextBase& context) {
  const auto found = context.client_metadata().find(kClientSecretKey);
  if (found != context.client_metadata().end() && !found->second.empty() &&
      found->second.size() <= kMaxClientSecretBytes) {
    return absl::StrCat("secret ", absl::string_view(found->second.data(),
                                                     found->second.size()));
  }
  return CallerOf(context);
}

}  // namespace penstock::tensor
