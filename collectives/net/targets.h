// Memory of the program in which parts are received.

#ifndef PENSTOCK_COLLECTIVES_NET_TARGETS_H_
#define PENSTOCK_COLLECTIVES_NET_TARGETS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/types/optional.h"
#include "collectives/net/ledger.h"
#include "collectives/net/loans.h"
#include "collectives/net/message.h"
#include "transport/base/mutex.h"
#include "transport/memory/destinations.h"

namespace penstock::collectives {

// The ranges in which parts of the running operation are received, so that
// nobody copies them. An operation offers a range for each part that it
// expects. A connection claims the range when the part's head arrives, and then
// writes there. A part without an offer is received elsewhere.
//
//  Thread-safe.
class Targets {
 public:
  // Notifies the ledger's signal when a connection has ceased to write.
  explicit Targets(std::shared_ptr<Ledger> ledger)
      : claimed_(std::make_shared<Loans>(std::move(ledger))) {}

  // Offers memory for a part of `peer`. Replaces an earlier offer. The memory
  // must stay valid until Withdraw(), and then until Writer() returns nullopt.
  void Offer(int peer, const Key& key, void* data, size_t bytes);
  // Ends the offer for a part, if it was not claimed.
  void Withdraw(int peer, const Key& key);
  // Ends all offers that were not claimed.
  void Withdraw();
  // Ends the offer for a part. Returns its memory, or null without an offer.
  // The claim ends with the last reference to the result.
  std::shared_ptr<memory::Destinations> Claim(int peer, const Key& key);
  // Returns a rank whose part may still be written to its target, or whose
  // received part still refers to its target. Returns nullopt if there is none.
  absl::optional<int> Writer() { return claimed_->Borrower(); }

 private:
  struct Range {
    void* data;
    size_t bytes;
  };

  const std::shared_ptr<Loans> claimed_;
  base::Mutex mu_;
  std::map<std::pair<int, Key>, Range> offered_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_TARGETS_H_
