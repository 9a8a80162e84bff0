// The fabric of shared memory, between two processes on one host.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_FABRIC_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_FABRIC_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/mutex.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/listener.h"
#include "transport/fabric/shm/options.h"

namespace penstock {
namespace fabric {
namespace shm {

// Connects over UNIX sockets, on the process's event loop. Calls callbacks on
// the loop's thread. Requires Linux 5.14.
//
// Neither process can write to the other's memory, crash the other, or make it
// wait. A process can change the memory that it lends while the other process
// reads that memory. Therefore only processes of the same user use lent memory
// without a copy.
//
// Destroying the fabric does not affect connections, or pending Connect()
// calls. A pending Listen() ends with DEADLINE_EXCEEDED after its limit. A
// forked child has a new listener.
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
  // Returns the listener, made on first use.
  absl::StatusOr<std::shared_ptr<Listener>> GetListener();

  const Options options_;

  base::Mutex mu_;
  std::shared_ptr<Listener> listener_ ABSL_GUARDED_BY(mu_);
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_FABRIC_H_
