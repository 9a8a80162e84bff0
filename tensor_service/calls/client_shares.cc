#include "tensor_service/client_shares.h"

#include <unordered_map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"

namespace penstock::tensor {

// Counts of all clients with a nonzero amount.
struct ClientShares::Counts {
  absl::Mutex mu;
  size_t all ABSL_GUARDED_BY(mu) = 0;
  std::unordered_map<std::string, size_t> of_clients ABSL_GUARDED_BY(mu);
};

ClientShares::Hold::Hold(std::shared_ptr<Counts> counts, std::string client,
                         size_t amount)
    : counts_(std::move(counts)), client_(std::move(client)), amount_(amount) {}

ClientShares::Hold::~Hold() {
  if (counts_ == nullptr) return;
  absl::MutexLock lock(&counts_->mu);
  counts_->all -= amount_;
  const auto found = counts_->of_clients.find(client_);
  found->second -= amount_;
  if (found->second == 0) counts_->of_clients.erase(found);
}

ClientShares::Hold::Hold(Hold&& other) noexcept
    : counts_(std::move(other.counts_)),
      client_(std::move(other.client_)),
      amount_(other.amount_) {}

ClientShares::Hold& ClientShares::Hold::operator=(Hold&& other) noexcept {
  std::swap(counts_, other.counts_);
  std::swap(client_, other.client_);
  std::swap(amount_, other.amount_);
  const Hold gone(std::move(other));  // freed now, not together with `other`
  return *this;
}

ClientShares::ClientShares(size_t limit, double share)
    : limit_(limit), share_(share), counts_(std::make_shared<Counts>()) {}

absl::StatusOr<ClientShares::Hold> ClientShares::Take(const std::string& client,
                                                      size_t amount) {
  if (client.empty() || amount == 0) return Hold();
  absl::MutexLock lock(&counts_->mu);
  const auto found = counts_->of_clients.find(client);
  const size_t own = found == counts_->of_clients.end() ? 0 : found->second;
  const size_t others = counts_->all - own;
  const size_t left = limit_ > others ? limit_ - others : 0;
  // Avoids floating-point numbers for a share of 1, which could become slightly
  // less than everything.
  const auto most =
      share_ < 1 ? static_cast<size_t>(static_cast<double>(left) * share_)
                 : left;
  if (own > most || amount > most - own) {
    return absl::ResourceExhaustedError(absl::StrCat(
        amount, " more and the ", own, " that this client has exceed its share",
        ", ", most, " of ", limit_, "; end its other calls first"));
  }
  counts_->all += amount;
  counts_->of_clients[client] += amount;
  return Hold(counts_, client, amount);
}

}  // namespace penstock::tensor
