#include "collectives/net/targets.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/net/message.h"
#include "transport/base/mutex.h"
#include "transport/memory/bytes.h"
#include "transport/memory/destinations.h"

namespace penstock::collectives {

void Targets::Offer(int peer, const Key& key, void* data, size_t bytes) {
  base::MutexLock lock(&mu_);
  offered_[{peer, key}] = {data, bytes};
}

void Targets::Withdraw(int peer, const Key& key) {
  base::MutexLock lock(&mu_);
  offered_.erase({peer, key});
}

void Targets::Withdraw() {
  base::MutexLock lock(&mu_);
  offered_.clear();
}

std::shared_ptr<memory::Destinations> Targets::Claim(int peer, const Key& key) {
  base::MutexLock lock(&mu_);
  const auto found = offered_.find({peer, key});
  if (found == offered_.end()) return nullptr;
  const Range range = found->second;
  offered_.erase(found);
  // Lends under the lock, so that a claim is in Writer() before Withdraw()
  // returns.
  memory::Bytes claim = claimed_->Lend(peer, range.data, range.bytes);
  return std::make_shared<memory::Destinations>(
      std::vector<memory::Destination>{
          {static_cast<uint8_t*>(range.data), range.bytes}},
      std::move(claim.owner), memory::Destinations::Registered::kForOneMessage);
}

}  // namespace penstock::collectives
