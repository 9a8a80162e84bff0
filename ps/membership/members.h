// The servers and workers that are registered in etcd.

#ifndef PENSTOCK_PS_MEMBERSHIP_MEMBERS_H_
#define PENSTOCK_PS_MEMBERSHIP_MEMBERS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/etcd/copy.h"
#include "ps/membership/membership.pb.h"
#include "ps/membership/registration.h"
#include "ps/membership/registry.h"

namespace penstock::ps::membership {

// Limits the number of servers that a message from etcd may name.
constexpr uint32_t kMaxServers = 4096;

// Return the options with which Registration::Register() registers a member.
// Return INVALID_ARGUMENT for a wrong name, address or number.
absl::StatusOr<Registration::Options> ServerOptions(Registry* registry,
                                                    const v1::Server& server);
Registration::Options WorkerOptions(Registry* registry,
                                    const v1::Worker& worker);

// Returns true if `a` comes before `b` in the order of servers. Numbers in
// names count as numbers: ps-2 comes before ps-10. All processes use this
// order, which decides which server has which part of a table.
bool IsBefore(absl::string_view a, absl::string_view b);

// Returns the registered servers, in order. Returns FAILED_PRECONDITION, which
// names the key, if the value of a key describes no server.
absl::StatusOr<std::vector<v1::Server>> RegisteredServers(
    const etcd::Values& values, const std::string& prefix);

// Returns OK if the registered servers agree. Otherwise returns
// FAILED_PRECONDITION, which names two servers and the remedy. Servers disagree
// if they give different numbers of servers or replicas, if more servers than
// that number are registered, or if two of them have the same address.
absl::Status CheckAgreement(const std::vector<v1::Server>& servers);

// Returns the servers in order, or nullopt if some are still missing. Returns
// the errors of RegisteredServers() and CheckAgreement().
absl::StatusOr<absl::optional<std::vector<v1::Server>>> CompleteServers(
    const etcd::Values& values, const std::string& prefix);

// Waits until all servers are registered. If the training already has a view,
// one registered server is enough. Returns all servers in order. A server that
// is no longer registered has only an address. Calls `interrupted`, unless
// empty, about every 100 ms, and returns CANCELLED once `interrupted` returns
// true. Errors name the remedy:
//
//   DEADLINE_EXCEEDED    servers are missing
//   FAILED_PRECONDITION  CompleteServers()'s error, until the timeout
//   UNAUTHENTICATED, PERMISSION_DENIED, DATA_LOSS
//                        etcd::Client's, immediately
//   others               etcd::Client's, if etcd is unreachable until the
//                        timeout
absl::StatusOr<std::vector<v1::Server>> AwaitServers(
    Registry* registry, absl::Duration timeout,
    const std::function<bool()>& interrupted = nullptr);

}  // namespace penstock::ps::membership

#endif  // PENSTOCK_PS_MEMBERSHIP_MEMBERS_H_
