// One process's part in a training whose members find each other by etcd.

#ifndef PENSTOCK_PS_MEMBERSHIP_MEMBERSHIP_H_
#define PENSTOCK_PS_MEMBERSHIP_MEMBERSHIP_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "ps/etcd/cancel.h"
#include "ps/etcd/client.h"
#include "ps/membership/membership.pb.h"
#include "ps/membership/registration.h"
#include "ps/membership/registry.h"

namespace penstock::ps::membership {

// The client, the registry, and the registration of this process. Each process
// registers at most once. Not thread-safe.
class Membership {
 public:
  // Connects to the etcd and the training of `target`; see target.h. Waits for
  // etcd until the timeout. Calls `interrupted`, unless empty, about every
  // second, and returns CANCELLED once `interrupted` returns true. Returns the
  // errors of ParseTarget(), ClientOptions() and Registry::Open().
  static absl::StatusOr<std::unique_ptr<Membership>> Open(
      absl::string_view target, absl::Duration timeout = Registry::kTimeout,
      const std::function<bool()>& interrupted = nullptr);

  // Registers a server or a worker until the destructor, or fails as
  // Registration::Register() does. Calls `log` with a line when etcd becomes
  // unreachable or reachable again. Draws a random incarnation for a server
  // that has none. Other members count a silent server as alive for
  // `time_to_live`.
  absl::Status RegisterServer(v1::Server server, absl::Duration time_to_live,
                              std::function<void(const std::string&)> log,
                              etcd::Cancel* cancel = nullptr);
  absl::Status RegisterWorker(uint32_t rank,
                              std::function<void(const std::string&)> log);

  // Waits for all servers. Returns their addresses in order. Returns the errors
  // of AwaitServers() in members.h.
  absl::StatusOr<std::vector<std::string>> AwaitServers(
      absl::Duration timeout, const std::function<bool()>& interrupted);

  Registry* registry() { return registry_.get(); }
  // Null before the process has registered.
  const Registration* registration() const { return registration_.get(); }

 private:
  explicit Membership(etcd::Client::Options options)
      : client_(std::move(options)) {}
  // Opens the registry. See Open().
  absl::Status OpenRegistry(const std::string& prefix, absl::Duration timeout,
                            const std::function<bool()>& interrupted);
  absl::Status Register(Registration::Options options,
                        std::function<void(const std::string&)> log,
                        etcd::Cancel* cancel);

  etcd::Client client_;
  std::unique_ptr<Registry> registry_;
  std::unique_ptr<Registration> registration_;
};

// Returns the addresses of a training's servers. If `names` is one target
// (target.h), waits until etcd answers and all servers are registered there.
// Otherwise returns `names` itself.
absl::StatusOr<std::vector<std::string>> FindServers(
    const std::vector<std::string>& names, absl::Duration timeout,
    const std::function<bool()>& interrupted = nullptr);

}  // namespace penstock::ps::membership

#endif  // PENSTOCK_PS_MEMBERSHIP_MEMBERSHIP_H_
