// The pushes and joins of workers that are in the log and were not fed yet.

#ifndef PENSTOCK_PS_SHARDS_LOGGED_CALLS_H_
#define PENSTOCK_PS_SHARDS_LOGGED_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/types/optional.h"
#include "ps/server/calls.h"
#include "ps/server/exchange.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// A push whose gradients were checked.
struct CheckedGradients {
  std::shared_ptr<Exchange> exchange;
  Exchange::CheckedPush push;
};

// A worker's push, from its call to its answer.
struct PushCall {
  View view;
  WorkerId worker;
  uint64_t clock = 0;
  tensor::Bundle gradients;
  uint64_t ticket = 0;
  absl::optional<CheckedGradients> checked;
  size_t held_bytes = 0;
};
using PushCallPtr = std::shared_ptr<PushCall>;

// The calls whose entries are in the log. Finds the call of an entry, and the
// entry of a repeated push. Not thread-safe.
class LoggedCalls {
 public:
  void AddPush(uint64_t seq, const PushCallPtr& call);
  void AddJoin(uint64_t seq, uint64_t ticket) { joins_[seq] = ticket; }
  // Removes and returns the push of an entry. Returns null if another primary
  // has logged the entry.
  PushCallPtr TakePush(uint64_t seq);
  // Removes and returns the ticket of the call of a join. Returns 0 if another
  // primary has logged the entry.
  uint64_t TakeJoin(uint64_t seq);
  // Moves the checked gradients of a push out of its call.
  absl::optional<CheckedGradients> TakeChecked(uint64_t seq);
  // Returns the entry of the push that `call` repeats, or nullopt if there is
  // none.
  absl::optional<uint64_t> EntryOf(const PushCall& call) const;
  // Returns the bytes of the checked gradients of all pushes.
  size_t checked_bytes() const { return checked_bytes_; }
  void Clear();

 private:
  using Key = std::pair<std::pair<uint32_t, uint64_t>, uint64_t>;
  static Key KeyOf(const PushCall& call) {
    return {{call.worker.rank, call.worker.incarnation}, call.clock};
  }

  std::map<uint64_t, PushCallPtr> pushes_;  // by entry
  std::map<uint64_t, uint64_t> joins_;      // ticket by entry
  std::map<Key, uint64_t> entries_;         // the entry of each call in pushes_
  size_t checked_bytes_ = 0;                // the checked bytes of pushes_
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_LOGGED_CALLS_H_
