// A protection domain, and all that is registered in it.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_DOMAIN_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_DOMAIN_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/fabric/verbs/options.h"
#include "transport/fabric/verbs/pool.h"
#include "transport/fabric/verbs/registration_cache.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Memory that is registered for as long as this lives.
struct Registered {
  ibv_mr* region = nullptr;
  SharedRegistration share;  // null: it is of a pool
};

// With windows nothing in it can be reached by any peer, but through a window,
// which is bound to one queue pair: so all connections of a device share one.
// Without, there is one for each connection, whose peer reaches all of
// exposed_pool(). Thread-safe.
class Domain {
 public:
  // `locked_limit` is what the process may lock. With windows the pools have no
  // bounds but the quotas of their users.
  static absl::StatusOr<std::shared_ptr<Domain>> Create(Api* api,
                                                        ibv_context* device,
                                                        const Options& options,
                                                        bool with_windows,
                                                        uint64_t locked_limit);
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  ibv_pd* get() const { return domain_->get(); }
  bool has_windows() const { return with_windows_; }

  // For messages, and for what is read from peers.
  Pool* private_pool() { return private_pool_.get(); }
  // For copies of what peers read.
  Pool* exposed_pool() { return exposed_pool_.get(); }

  // Memory to be read into, of the pool or of the heap.
  absl::StatusOr<memory::Block> AllocateForRead(
      size_t size, const std::shared_ptr<Quota>& quota);
  // For requests of this side that write to `bytes`, which outlive them.
  absl::StatusOr<Registered> GetForRead(const memory::Bytes& bytes);
  // For windows on `bytes`: what is registered already, or null.
  Registered FindForWindow(const memory::Bytes& bytes);
  absl::StatusOr<Registered> GetForWindow(const memory::Bytes& bytes);

  RegistrationCounters counters() const { return cache_->counters(); }

 private:
  Domain(Api* api, std::shared_ptr<const ProtectionDomain> domain,
         const Options& options, bool with_windows, uint64_t locked_limit);

  const bool with_windows_;
  const std::shared_ptr<const ProtectionDomain> domain_;
  const std::shared_ptr<Pool> private_pool_;
  const std::shared_ptr<Pool> exposed_pool_;
  const std::shared_ptr<RegistrationCache> cache_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_DOMAIN_H_
