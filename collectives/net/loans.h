// Memory of the program to which parts in flight refer.

#ifndef PENSTOCK_COLLECTIVES_NET_LOANS_H_
#define PENSTOCK_COLLECTIVES_NET_LOANS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/types/optional.h"
#include "collectives/net/ledger.h"
#include "transport/base/mutex.h"
#include "transport/memory/bytes.h"

namespace penstock::collectives {

// The ranges of memory that connections send without a copy, or receive into.
// Nobody else may write to a range before its loan has ended. A loan ends once
// the connection has sent and the peer has received the bytes, or once the
// received part was dropped, or the connection has ended.
//
//  Thread-safe. Owned by shared_ptr, because a loan may end on any thread.
class Loans : public std::enable_shared_from_this<Loans> {
 public:
  // Notifies the ledger's signal at the end of each loan.
  explicit Loans(std::shared_ptr<Ledger> ledger) : ledger_(std::move(ledger)) {}

  // Lends memory to the connection with `peer`. The loan ends with the last
  // copy of the result.
  memory::Bytes Lend(int peer, const void* data, size_t bytes);

  // Returns a rank to which a part of the range is lent, or nullopt.
  absl::optional<int> BorrowerOf(const void* data, size_t bytes);
  // Returns a rank to which any memory is lent, or nullopt.
  absl::optional<int> Borrower();

 private:
  struct Loan {
    int peer;
    const uint8_t* begin;
    const uint8_t* end;
  };

  void End(std::list<Loan>::iterator loan);

  const std::shared_ptr<Ledger> ledger_;
  base::Mutex mu_;
  std::list<Loan> loans_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_LOANS_H_
