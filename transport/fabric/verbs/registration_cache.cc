#include "transport/fabric/verbs/registration_cache.h"

#include <unistd.h>

#include <iterator>
#include <utility>

#include "absl/memory/memory.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// A declared range is registered as a whole if it takes at most this fraction
// (1 / n) of the budget. Each part of the range then finds the registration. Of
// a larger range, only the requested bytes are registered.
constexpr uint64_t kWholeRangePart = 2;
// Limits the users of a region of undeclared memory: as many peers as one
// message often goes to. Each further user delays the release of the memory to
// its owner, who may be waiting for it.
constexpr int kMaxUsers = 64;

}  // namespace

Registration::Registration(std::shared_ptr<const ProtectionDomain> domain,
                           std::shared_ptr<const void> memory,
                           MemoryRegion region)
    : fork_count_(progress::ForkCount()),
      domain_(std::move(domain)),
      memory_(std::move(memory)),
      region_(std::move(region)) {}

Registration::~Registration() {
  if (fork_count_ == progress::ForkCount()) return;
  new MemoryRegion(std::move(region_));
  new std::shared_ptr<const ProtectionDomain>(std::move(domain_));
}

std::shared_ptr<RegistrationCache> RegistrationCache::Create(
    Api* api, std::shared_ptr<const ProtectionDomain> domain, uint64_t budget) {
  std::shared_ptr<RegistrationCache> cache =
      absl::WrapUnique(new RegistrationCache(api, std::move(domain), budget));
  memory::WatchStableMemory(cache);
  return cache;
}

RegistrationCache::RegistrationCache(
    Api* api, std::shared_ptr<const ProtectionDomain> domain, uint64_t budget)
    : api_(api),
      domain_(std::move(domain)),
      budget_(budget),
      limit_(metrics::Metric::kCacheLimit, {}, budget),
      kept_(metrics::Metric::kCacheUsed, {}),
      hits_(metrics::Metric::kCacheHits, {}),
      misses_(metrics::Metric::kCacheMisses, {}),
      evictions_(metrics::Metric::kCacheEvictions, {}),
      fork_count_(progress::ForkCount()) {}

RegistrationCache::~RegistrationCache() {
  if (fork_count_ == progress::ForkCount()) return;
  new std::shared_ptr<const ProtectionDomain>(std::move(domain_));
}

RegistrationCache::Extent RegistrationCache::PagesOf(const void* data,
                                                     size_t size) {
  // Rounds to whole pages, because the device pins whole pages. This is safe:
  // the caller holds a part of the first and of the last page, so neither can
  // be remapped.
  static const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data);
  return Extent{begin & ~(page - 1), (begin + size + page - 1) & ~(page - 1)};
}

SharedRegistration RegistrationCache::Find(const memory::Bytes& bytes,
                                           int access) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(bytes.data);
  base::MutexLock lock(&mu_);
  auto it = entries_.upper_bound(begin);
  while (it != entries_.begin()) {
    Entry& entry = (--it)->second;
    if (entry.extent.end < begin + bytes.size ||
        (entry.access & access) != access) {
      continue;
    }
    // Holds the reference, which is returned. If the last reference were
    // dropped here, the region would end under the lock.
    SharedRegistration found = entry.region.lock();
    if (found == nullptr) {
      it = entries_.erase(it);
      continue;
    }
    ++entry.uses;
    if (entry.promise == nullptr && entry.uses == kMaxUsers) {
      entries_.erase(it);
      ++counters_.hits;
      hits_.Add(1);
      return found;
    }
    entry.last_use = ++clock_;
    ++counters_.hits;
    hits_.Add(1);
    return found;
  }
  return nullptr;
}

absl::StatusOr<SharedRegistration> RegistrationCache::Get(
    const memory::Bytes& bytes, int access) {
  SharedRegistration found = Find(bytes, access);
  if (found != nullptr) return found;
  Entry entry;
  entry.access = access;
  absl::StatusOr<MemoryRegion> region = Register(bytes, &entry);
  if (!region.ok()) return region.status();
  found = std::make_shared<const Registration>(
      domain_, entry.promise == nullptr ? bytes.owner : nullptr,
      *std::move(region));
  entry.region = found;
  if (entry.promise != nullptr) entry.kept = found;
  const bool is_certain = entry.promise != nullptr || bytes.owner != nullptr;
  if (is_certain) Insert(std::move(entry));
  base::MutexLock lock(&mu_);
  ++counters_.misses;
  misses_.Add(1);
  return found;
}

absl::StatusOr<MemoryRegion> RegistrationCache::Register(
    const memory::Bytes& bytes, Entry* entry) {
  entry->promise = memory::FindStable(bytes.data, bytes.size);
  if (entry->promise != nullptr &&
      entry->promise->size() <= budget_ / kWholeRangePart) {
    entry->extent = PagesOf(entry->promise->data(), entry->promise->size());
    absl::StatusOr<MemoryRegion> whole = Register(entry->extent, entry->access);
    if (whole.ok()) return whole;
  }
  entry->extent = PagesOf(bytes.data, bytes.size);
  return Register(entry->extent, entry->access);
}

absl::StatusOr<MemoryRegion> RegistrationCache::Register(const Extent& extent,
                                                         int access) {
  void* const begin = reinterpret_cast<void*>(extent.begin);
  const uint64_t size = extent.end - extent.begin;
  absl::StatusOr<MemoryRegion> region =
      RegMr(api_, domain_->get(), begin, size, access);
  // Ends the kept regions that nobody uses, and retries: the limit of locked
  // memory is reached, and kept regions count against it.
  if (absl::IsResourceExhausted(region.status()) && EndUnused()) {
    region = RegMr(api_, domain_->get(), begin, size, access);
  }
  return region;
}

void RegistrationCache::Insert(Entry entry) {
  Regions evicted;  // ended after the lock
  base::MutexLock lock(&mu_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    it = it->second.region.expired() ? entries_.erase(it) : std::next(it);
  }
  if (entry.promise != nullptr) {
    // Stores nothing if the promise has ended while the region was made:
    // OnRangeEnded() has run or is about to run, and finds nothing.
    if (entry.promise->is_over()) return;
    const uint64_t size = entry.extent.end - entry.extent.begin;
    if (EvictLocked(size, &evicted)) {
      counters_.kept_bytes += size;
      kept_.Add(size);
    } else {
      entry.kept = nullptr;
    }
  }
  entry.last_use = ++clock_;
  entries_.emplace(entry.extent.begin, std::move(entry));
}

bool RegistrationCache::EvictLocked(uint64_t bytes, Regions* out) {
  if (bytes > budget_) return false;
  while (counters_.kept_bytes > budget_ - bytes) {
    auto oldest = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it) {
      const Entry& entry = it->second;
      // Skips entries in use, which have other references. New references are
      // given only under the lock.
      if (entry.kept == nullptr || entry.kept.use_count() > 1) continue;
      if (oldest == entries_.end() ||
          entry.last_use < oldest->second.last_use) {
        oldest = it;
      }
    }
    if (oldest == entries_.end()) return false;
    const Extent& extent = oldest->second.extent;
    counters_.kept_bytes -= extent.end - extent.begin;
    kept_.Subtract(extent.end - extent.begin);
    ++counters_.evictions;
    evictions_.Add(1);
    out->push_back(std::move(oldest->second.kept));
    entries_.erase(oldest);
  }
  return true;
}

bool RegistrationCache::EndUnused() {
  Regions evicted;
  base::MutexLock lock(&mu_);
  (void)EvictLocked(budget_, &evicted);
  return !evicted.empty();
}

void RegistrationCache::OnRangeEnded(const memory::StableRange& range) {
  if (fork_count_ != progress::ForkCount()) return;
  Regions over;  // ended after the lock, unless in use
  base::MutexLock lock(&mu_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    Entry& entry = it->second;
    if (entry.promise.get() != &range) {
      ++it;
      continue;
    }
    if (entry.kept != nullptr) {
      counters_.kept_bytes -= entry.extent.end - entry.extent.begin;
      kept_.Subtract(entry.extent.end - entry.extent.begin);
      over.push_back(std::move(entry.kept));
    }
    it = entries_.erase(it);
  }
}

RegistrationCounters RegistrationCache::counters() const {
  base::MutexLock lock(&mu_);
  return counters_;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
