#include "python/rpc/reports.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include "transport/base/per_process.h"

namespace penstock::python {

Reports* Reports::Get() { return base::PerProcess<Reports>::Get(); }

uint64_t Reports::Open() {
  base::MutexLock lock(&mu_);
  queues_[++last_];
  return last_;
}

uint64_t Reports::OpenReadable() {
  base::UniqueFd readable(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!readable.valid()) return 0;
  base::MutexLock lock(&mu_);
  queues_[++last_].readable = std::move(readable);
  return last_;
}

int Reports::DescriptorOf(uint64_t queue) {
  base::MutexLock lock(&mu_);
  const auto found = queues_.find(queue);
  return found == queues_.end() ? -1 : found->second.readable.get();
}

void Reports::Add(uint64_t number) {
  base::MutexLock lock(&mu_);
  const auto found = queues_.find(number >> kQueueShift);
  if (found == queues_.end()) return;
  Queue& queue = found->second;
  queue.numbers.push_back(number);
  if (!queue.readable.valid()) return queue.changed.notify_one();
  // Cannot fail, because each TakeReady() sets the eventfd's counter back to 0.
  if (queue.numbers.size() == 1) (void)eventfd_write(queue.readable.get(), 1);
}

std::vector<uint64_t> Reports::TakeReady(uint64_t queue) {
  std::vector<uint64_t> numbers;
  base::MutexLock lock(&mu_);
  const auto found = queues_.find(queue);
  if (found == queues_.end() || found->second.numbers.empty()) return numbers;
  numbers.swap(found->second.numbers);
  eventfd_t count = 0;
  (void)eventfd_read(found->second.readable.get(), &count);
  return numbers;
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
  if (found->second.readable.valid()) {
    queues_.erase(found);
    return;
  }
  found->second.closed = true;
  found->second.changed.notify_one();
}

}  // namespace penstock::python
