#include "collectives/net/loans.h"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "absl/types/optional.h"
#include "transport/base/mutex.h"
#include "transport/memory/bytes.h"

namespace penstock::collectives {

memory::Bytes Loans::Lend(int peer, const void* data, size_t bytes) {
  const auto* const begin = static_cast<const uint8_t*>(data);
  std::list<Loan>::iterator loan;
  {
    base::MutexLock lock(&mu_);
    loan = loans_.insert(loans_.end(), {peer, begin, begin + bytes});
  }
  std::shared_ptr<const void> owner(
      begin,
      [self = shared_from_this(), loan](const void*) { self->End(loan); });
  return {begin, bytes, std::move(owner)};
}

void Loans::End(std::list<Loan>::iterator loan) {
  {
    base::MutexLock lock(&mu_);
    loans_.erase(loan);
  }
  ledger_->signal().Notify();
}

absl::optional<int> Loans::BorrowerOf(const void* data, size_t bytes) {
  const auto* const begin = static_cast<const uint8_t*>(data);
  base::MutexLock lock(&mu_);
  for (const Loan& loan : loans_) {
    if (loan.begin < begin + bytes && begin < loan.end) return loan.peer;
  }
  return absl::nullopt;
}

absl::optional<int> Loans::Borrower() {
  base::MutexLock lock(&mu_);
  if (loans_.empty()) return absl::nullopt;
  return loans_.front().peer;
}

}  // namespace penstock::collectives
