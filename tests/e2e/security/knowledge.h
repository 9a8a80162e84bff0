// The properties that each side of a connection knows of its peer.

#ifndef PENSTOCK_TESTS_E2E_SECURITY_KNOWLEDGE_H_
#define PENSTOCK_TESTS_E2E_SECURITY_KNOWLEDGE_H_

#include <ostream>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpcpp/security/auth_context.h"

namespace penstock::e2e {

// The properties of a peer.
struct Knowledge {
  bool authenticated = false;
  std::string identity_name;
  std::multiset<std::string> identities;
  std::multiset<std::string> properties;  // "name=value"
  std::string peer;                       // without the port

  Knowledge() = default;
  Knowledge(const grpc::AuthContext& context, const std::string& uri)
      : authenticated(context.IsPeerAuthenticated()),
        identity_name(context.GetPeerIdentityPropertyName()),
        peer(uri.substr(0, uri.rfind(':'))) {
    for (const grpc::string_ref& each : context.GetPeerIdentity()) {
      identities.emplace(each.data(), each.size());
    }
    for (const auto& each : context) {
      properties.insert(
          absl::StrCat(std::string(each.first.data(), each.first.size()), "=",
                       std::string(each.second.data(), each.second.size())));
    }
  }

  bool Has(const std::string& property) const {
    return properties.count(property) > 0;
  }
};

inline bool operator==(const Knowledge& a, const Knowledge& b) {
  return a.authenticated == b.authenticated &&
         a.identity_name == b.identity_name && a.identities == b.identities &&
         a.properties == b.properties && a.peer == b.peer;
}

inline std::ostream& operator<<(std::ostream& out, const Knowledge& known) {
  out << (known.authenticated ? "authenticated by " : "not authenticated")
      << known.identity_name << " at " << known.peer;
  for (const std::string& each : known.properties) out << "\n  " << each;
  return out;
}

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_SECURITY_KNOWLEDGE_H_
