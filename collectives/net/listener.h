// The port at which other ranks reach this rank.

#ifndef PENSTOCK_COLLECTIVES_NET_LISTENER_H_
#define PENSTOCK_COLLECTIVES_NET_LISTENER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "collectives/net/ledger.h"
#include "collectives/net/targets.h"
#include "transport/progress/spin_policy.h"
#include "transport/rpc/server.h"
#include "transport/settings/settings.h"

namespace penstock::collectives {

struct ListenerOptions {
  // A numeric address of this host at which all other ranks reach it.
  std::string host = "127.0.0.1";
  // A text without spaces. Ranks with equal texts count as ranks of one host.
  // If the text is empty, ranks count as ranks of one host if they share a
  // kernel, a network namespace and a user.
  std::string neighbourhood;
  // The settings of connections, including their paths. All ranks of a group
  // should agree.
  Settings settings;
  progress::PollingMode polling = progress::PollingMode::kAdaptive;
};

// A listener for one group. Other ranks need its address, which contains a
// secret. Callers without the secret are refused, and cannot harm the group.
//
// Thread-safe.
class Listener {
 public:
  static absl::StatusOr<std::unique_ptr<Listener>> Open(
      const ListenerOptions& options);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  // Ends all connections that other ranks have made to this rank.
  ~Listener();

  // Returns the address to give to all other ranks.
  const std::string& address() const { return address_; }
  const ListenerOptions& options() const { return options_; }

  // Admits the ranks that have the same `digest` of addresses, and records
  // their messages. Answers the ranks that have called before. Receives parts
  // in `targets`, which may be null. Call once.
  void Admit(std::shared_ptr<Ledger> ledger, const std::string& digest,
             std::shared_ptr<Targets> targets = nullptr);
  // Ends the connection that a rank has made to this rank.
  void Disconnect(int rank);

 private:
  class Door;

  Listener(const ListenerOptions& options, std::shared_ptr<Door> door)
      : options_(options), door_(std::move(door)) {}

  const ListenerOptions options_;
  const std::shared_ptr<Door> door_;
  std::string address_;
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_LISTENER_H_
