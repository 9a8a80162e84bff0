// A gRPC server's check of who may do what.

#ifndef PENSTOCK_PS_ACCESS_ACCESS_H_
#define PENSTOCK_PS_ACCESS_ACCESS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/server_context.h"
#include "ps/access/policy.h"
#include "transport/base/limited_log.h"

namespace penstock::ps {

// Holds the policy of a server, checks calls by it, and counts and logs those
// that it refuses. Each method of a service begins with
//
//   absl::Status may = access->Check(*context, Permission::kTrain);
//   if (!may.ok()) return Finish(context, may);
//
// The names are those of the certificate that TLS has verified, over each of
// Penstock's paths. The server's credentials must be such that verify it
// (GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, as in
// ServerSecurity()): gRPC does not tell a certificate that was not verified
// from one that was.
//
// A call is checked when it begins: a stream goes on after Replace(). gRPC has
// read the message of a unary call by then.
//
// Thread-safe.
class Access {
 public:
  using Policy = AccessPolicy;

  // `encrypted` says whether the server uses TLS. Logs what the policy asks
  // for, and a warning if secrets go over the network as they are, or if nobody
  // has one of the permissions.
  Access(Policy policy, bool encrypted);

  // Returns what Decide() returns for the caller. Logs refusals, within limits.
  absl::Status Check(const grpc::ServerContextBase& context,
                     Permission permission);

  // Has calls that begin later checked by `policy`, and logs as above.
  void Replace(Policy policy);

  // Returns how many calls that wanted `permission` were refused.
  uint64_t refused(Permission permission) const;

 private:
  std::shared_ptr<const Policy> policy() const;
  void Refuse(const grpc::ServerContextBase& context, Permission permission,
              const absl::Status& why);

  const bool encrypted_;
  mutable absl::Mutex mu_;
  std::shared_ptr<const Policy> policy_ ABSL_GUARDED_BY(mu_);
  // One for all peers: whoever fills it hides others, but the count shows.
  base::LimitedLog log_ ABSL_GUARDED_BY(mu_);
  std::array<std::atomic<uint64_t>, kPermissions> refused_{};
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_ACCESS_ACCESS_H_
