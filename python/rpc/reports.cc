#include "python/rpc/reports.h"

#include "transport/base/per_process.h"

namespace penstock::python {

Reports* Reports::Get() { return base::PerProcess<Reports>::Get(); }

uint64_t Reports::Open() {
  base::MutexLock lock(&mu_);
  queues_[++last_];
  return last_;
}

void Reports::Add(uint64_t number) {
  base::MutexLock lock(&mu_);
  const auto found = queues_.find(number >> kQueueShift);
  if (found == queues_.end()) return;
  found->second.numbers.push_back(number);
  found->second.changed.notify_one();
}

std::vector<uint64_t> Reports::Take(uint64_t queue) {
  std::vector<uint64_t> numbers;
  base::MutexLock lock(&mu_);
  const auto found = queues_.find(queue);
  if (found == queues_.end()) return numbers;
  while (found->second.numbers.empty() && !found->second.closed) {
    found->second.changed.wait(mu_);
  }
  numbers.swap(found->second.numbers);
  if (numbers.empty()) queues_.erase(found);
  return numbers;
}

void Reports::Close(uint64_t queue) {
  base::MutexLock lock(&mu_);
  const auto found = queues_.find(queue);
  if (found == queues_.end()) return;
  found->second.closed = true;
  found->second.changed.notify_one();
}

}  // namespace penstock::python
