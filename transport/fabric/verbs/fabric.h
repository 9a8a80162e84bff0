// The fabric of RDMA between two machines, by InfiniBand or RoCE verbs.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_FABRIC_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_FABRIC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/mutex.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/verbs/api.h"
#include "transport/fabric/verbs/options.h"

namespace penstock {
namespace fabric {
namespace verbs {

class Listener;
struct Route;
struct Site;

// Connects queue pairs by librdmacm (UDP port 4791 on RoCE), on the process's
// event loop. Calls callbacks on the loop's thread. The first call opens
// libibverbs and librdmacm. On a machine without these libraries, or without a
// device, all functions return an error that says so.
//
// Does not work in a forked child, which cannot use the parent's device.
class VerbsFabric : public Fabric {
 public:
  explicit VerbsFabric(const Options& options)
      : VerbsFabric(options, nullptr) {}
  // Uses `api` instead of the libraries. `api` must outlive the fabric, and
  // everything that the fabric makes.
  VerbsFabric(const Options& options, Api* api);
  ~VerbsFabric() override;

  absl::string_view name() const override { return "verbs"; }
  absl::StatusOr<std::string> Offer() override;
  std::unique_ptr<PendingConnect> Listen(absl::string_view token,
                                         ConnectCallback done) override;
  std::unique_ptr<PendingConnect> Connect(absl::string_view offer,
                                          absl::string_view token,
                                          ConnectCallback done) override;

 private:
  // The parts that are made on first use.
  struct Parts;

  // Returns the parts. Replaces the listener if its devices have changed.
  absl::StatusOr<Parts> GetParts();
  absl::StatusOr<Site> MakeSite() const;
  absl::StatusOr<std::vector<Route>> RoutesTo(absl::string_view offer,
                                              const Listener& listener) const;

  const Options options_;
  Api* const given_api_;

  base::Mutex mu_;
  std::unique_ptr<Parts> parts_ ABSL_GUARDED_BY(mu_);
  uint32_t fork_count_ = 0;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_FABRIC_H_
