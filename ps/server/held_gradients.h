// Gradients that were taken and are not applied.

#ifndef PENSTOCK_PS_SERVER_HELD_GRADIENTS_H_
#define PENSTOCK_PS_SERVER_HELD_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ps/consistency/policy.h"
#include "ps/server/gradients.h"

namespace penstock::ps {

// A push is kept until each policy that counts it has applied it.
class HeldGradients {
 public:
  // `counted` says of each policy whether it counts the push.
  void Keep(const PushId& push, Gradients gradients,
            const std::vector<bool>& counted);

  // Returns what is kept of the pushes, in their order. Valid until Drop().
  std::vector<Gradients*> Of(absl::Span<const PushId> pushes);

  // A policy has applied the pushes. Returns what no policy wants any more, for
  // the caller to destroy.
  std::vector<Gradients> Drop(absl::Span<const PushId> pushes);

  size_t bytes() const { return bytes_; }

 private:
  struct Entry {
    Gradients gradients;
    size_t bytes = 0;
    size_t policies = 0;  // that have not applied it
  };
  using Key = std::pair<uint32_t, uint64_t>;  // rank, clock

  std::map<Key, Entry> entries_;
  size_t bytes_ = 0;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_HELD_GRADIENTS_H_
