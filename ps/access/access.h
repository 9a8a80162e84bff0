// Checks a caller's permissions at a gRPC server.

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

// The access control of a gRPC server. Checks calls, and counts and logs
// refusals. Each method of a service begins with
//
//   absl::Status may = access->Check(*context, Permission::kTrain);
//   if (!may.ok()) return Finish(context, may);
//
// A caller's names come from the certificate that TLS verified, over each of
// Penstock's paths. The server's credentials must verify client certificates
// (GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, as in
// ServerSecurity()), because gRPC does not tell whether a certificate was
// verified.
//
// Calls are checked when they begin, so a stream continues after Replace(). By
// the time of the check, gRPC has already read the message of a unary call.
//
// Thread-safe.
class Access {
 public:
  using Policy = AccessPolicy;

  // Makes the access control, and logs the policy's requirements. Logs a
  // warning if secrets cross the network unencrypted, or if the policy gives a
  // permission to no caller. `encrypted` is true if the server uses TLS.
  Access(Policy policy, bool encrypted);

  // Returns the result of Decide() for the caller. Logs refusals, within
  // limits.
  absl::Status Check(const grpc::ServerContextBase& context,
                     Permission permission);

  // Applies `policy` to calls that begin later, and logs as the constructor
  // does.
  void Replace(Policy policy);

  // Returns the number of refused calls that needed `permission`.
  uint64_t refused(Permission permission) const;

 private:
  std::shared_ptr<const Policy> policy() const;
  void Refuse(const grpc::ServerContextBase& context, Permission permission,
              const absl::Status& why);

  const bool encrypted_;
  mutable absl::Mutex mu_;
  std::shared_ptr<const Policy> policy_ ABSL_GUARDED_BY(mu_);
  // Writes the lines about refused calls, within one limit for all peers. A
  // peer that exhausts the limit hides the refusals of other peers from the
  // log, but refused_ counts them.
  base::LimitedLog log_ ABSL_GUARDED_BY(mu_);
  std::array<std::atomic<uint64_t>, kPermissions> refused_{};
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_ACCESS_ACCESS_H_
