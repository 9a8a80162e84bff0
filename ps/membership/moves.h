// The operators' requests about the servers, which etcd stores.

#ifndef PENSTOCK_PS_MEMBERSHIP_MOVES_H_
#define PENSTOCK_PS_MEMBERSHIP_MOVES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/etcd/copy.h"
#include "ps/membership/membership.pb.h"
#include "ps/membership/registration.h"
#include "ps/membership/registry.h"

namespace penstock::ps::membership {

// The operators' present requests.
struct Wanted {
  std::vector<v1::Server> leaving;  // servers that should hold nothing
  bool to_own_servers = false;      // shards should return to their own servers
};

// Returns the operators' requests. Returns FAILED_PRECONDITION, which names the
// key, if a key belongs to another release.
absl::StatusOr<Wanted> ReadWanted(const etcd::Values& values,
                                  const std::string& prefix);

// Returns the etcd revision of the newest mark of a leaving server, or 0 if no
// server is marked.
int64_t RevisionOfMarks(const etcd::Values& values, const std::string& prefix);

// Claims the right to move shards. The right ends when the returned object is
// destroyed. Returns FAILED_PRECONDITION, which names the owner, if another
// command has the right.
absl::StatusOr<std::unique_ptr<Registration>> ClaimMove(Registry* registry,
                                                        v1::Move::Kind kind);

// How long the mark of a leaving server lasts.
enum class MarkLasts {
  kWithCommand,  // until the command loses the right to move shards
  kForRun,       // as long as the server's incarnation runs
};

// Mark a server that should hold no shards, or remove the mark. A mark applies
// only to one incarnation of the server. `claim` is the guard of ClaimMove()'s
// result. Return ABORTED if the claimed right has ended. Also return ABORTED if
// another process has just written the mark; then try again.
absl::Status MarkLeaving(Registry* registry, const v1::Server& server,
                         MarkLasts lasts, const Registry::Guard& claim);
absl::Status UnmarkLeaving(Registry* registry, const v1::Server& server,
                           const Registry::Guard& claim);

}  // namespace penstock::ps::membership

#endif  // PENSTOCK_PS_MEMBERSHIP_MOVES_H_
