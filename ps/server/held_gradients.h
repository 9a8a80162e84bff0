// Accepted gradients that are not applied yet.

#ifndef PENSTOCK_PS_SERVER_HELD_GRADIENTS_H_
#define PENSTOCK_PS_SERVER_HELD_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "ps/consistency/cut.h"
#include "ps/consistency/policy.h"
#include "ps/server/gradients.h"

namespace penstock::ps {

// The gradients of accepted pushes. Stores a push until every policy that
// counts the push has applied it.
class HeldGradients {
 public:
  // Stores `gradients`. `counted` has one entry per policy: true if the policy
  // counts the push.
  void Keep(const PushId& push, Gradients gradients,
            const std::vector<bool>& counted);

  // Returns the stored gradients of `pushes`, in the same order. The pointers
  // are valid until Drop().
  std::vector<Gradients*> Of(absl::Span<const PushId> pushes);

  // Records that one policy has applied `pushes`. Returns the gradients that no
  // policy needs any more, so that the caller can destroy them without a lock.
  std::vector<Gradients> Drop(absl::Span<const PushId> pushes);

  size_t bytes() const { return bytes_; }
  // Returns the bytes of the stored pushes that are not before `cut`.
  size_t BytesBehind(const CutPoint& cut) const;
  // Returns the bytes of one stored push.
  size_t BytesOf(const PushId& push) const {
    return entries_.at({push.rank, push.clock}).bytes;
  }

 private:
  struct Entry {
    Gradients gradients;
    size_t bytes = 0;
    size_t policies = 0;  // number of policies that still need the push
  };
  using Key = std::pair<uint32_t, uint64_t>;  // rank, clock

  std::map<Key, Entry> entries_;
  size_t bytes_ = 0;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_HELD_GRADIENTS_H_
