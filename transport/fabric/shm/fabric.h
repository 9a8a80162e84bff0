// Shared memory between two processes on one host.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_FABRIC_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_FABRIC_H_

#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/listener.h"
#include "transport/fabric/shm/options.h"

namespace penstock {
namespace fabric {
namespace shm {

// Connections are set up over UNIX sockets, by the process's event loop;
// callbacks run on its thread. Neither process can write to the other's memory,
// crash it or make it wait, but each can change what it has lent while the
// other reads: so only between processes of one uid is it used in place. Needs
// Linux 5.14.
//
// Destroying the fabric ends what is being set up, without callbacks for
// Listen(); connections stay. In a forked child it begins anew.
class ShmFabric : public Fabric {
 public:
  ShmFabric() : ShmFabric(Options()) {}
  explicit ShmFabric(Options options);

  absl::string_view name() const override { return "shm"; }
  absl::StatusOr<std::string> Offer() override;
  std::unique_ptr<PendingConnect> Listen(absl::string_view token,
                                         ConnectCallback done) override;
  std::unique_ptr<PendingConnect> Connect(absl::string_view offer,
                                          absl::string_view token,
                                          ConnectCallback done) override;

 private:
  // The listener, made on first use.
  absl::StatusOr<std::shared_ptr<Listener>> GetListener();

  const Options options_;

  std::mutex mu_;
  std::shared_ptr<Listener> listener_;  // guarded by mu_
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_FABRIC_H_
