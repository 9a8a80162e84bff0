// RDMA between two machines, by InfiniBand or RoCE verbs.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_FABRIC_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_FABRIC_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
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

// Queue pairs are connected by librdmacm (UDP port 4791 on RoCE), on the
// process's event loop; callbacks run on its thread. libibverbs and librdmacm
// are opened by the first call, and a machine without them, or without a
// device, is told so by Offer() and by errors.
//
// A forked child has no RDMA: its parent's device does not answer it.
class VerbsFabric : public Fabric {
 public:
  explicit VerbsFabric(const Options& options)
      : VerbsFabric(options, nullptr) {}
  // With `api` instead of the libraries; it outlives the fabric and all that
  // comes of it.
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
  // Made on first use, and the listener again when its devices have changed.
  struct Parts;

  absl::StatusOr<Parts> GetParts();
  absl::StatusOr<Site> MakeSite() const;
  absl::StatusOr<std::vector<Route>> RoutesTo(absl::string_view offer,
                                              const Listener& listener) const;

  const Options options_;
  Api* const given_api_;

  std::mutex mu_;
  std::unique_ptr<Parts> parts_;  // guarded by mu_
  uint32_t fork_count_ = 0;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_FABRIC_H_
