#include "transport/fabric/verbs/pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "transport/fabric/verbs/locked_memory.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr uint64_t kPageBytes = 4096;
// Limits the size of a segment, in bytes. A segment holds a few large messages;
// smaller segments would cause more registrations.
constexpr uint64_t kMaxSegmentBytes = 4 * 1024 * 1024;

uint64_t RoundUpToPages(uint64_t size) {
  return (size + kPageBytes - 1) / kPageBytes * kPageBytes;
}

absl::Status TooMuch(uint64_t limit) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "a connection's ", limit >> 20, " MiB of registered memory are in use"));
}

}  // namespace

bool Quota::Take(uint64_t size) {
  uint64_t used = used_.load();
  do {
    if (size > limit_ - used) return false;
  } while (!used_.compare_exchange_weak(used, used + size));
  return true;
}

PoolLease::~PoolLease() {
  if (pool_ == nullptr) return;
  if (quota_ != nullptr) quota_->GiveBack(size_);
  base::MutexLock lock(&pool_->mu_);
  pool_->segments_[segment_].ranges.Free(offset_, size_);
  pool_->used_.Subtract(size_);
}

Pool::Mapping::Mapping(uint64_t size) : size(size) {
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  data = mapped == MAP_FAILED ? nullptr : static_cast<uint8_t*>(mapped);
}

Pool::Mapping::~Mapping() {
  if (data != nullptr) munmap(data, size);
}

std::shared_ptr<Pool> Pool::Create(
    Api* api, std::shared_ptr<const ProtectionDomain> domain, int access,
    uint64_t budget) {
  return absl::WrapUnique(new Pool(api, std::move(domain), access, budget));
}

Pool::Pool(Api* api, std::shared_ptr<const ProtectionDomain> domain, int access,
           uint64_t budget)
    : api_(api),
      domain_(std::move(domain)),
      access_(access),
      budget_(budget),
      limit_(metrics::Metric::kPoolLimit, {metrics::Pool::kVerbs},
             budget == kUnlimited ? 0 : budget),
      used_(metrics::Metric::kPoolUsed, {metrics::Pool::kVerbs}),
      reserved_(metrics::Metric::kPoolReserved, {metrics::Pool::kVerbs}),
      fork_count_(progress::ForkCount()) {}

Pool::~Pool() {
  if (fork_count_ == progress::ForkCount()) return;
  // Leaks the segments in a forked child, because ending the registrations here
  // would also end the parent's registrations.
  new std::vector<Segment>(std::move(segments_));
  new std::shared_ptr<const ProtectionDomain>(domain_);
}

absl::StatusOr<std::shared_ptr<PoolLease>> Pool::Allocate(
    uint64_t size, const std::shared_ptr<Quota>& quota) {
  if (quota == nullptr) return AllocateUncounted(size);
  if (!quota->Take(size)) return TooMuch(quota->limit());
  absl::StatusOr<std::shared_ptr<PoolLease>> lease = AllocateUncounted(size);
  if (lease.ok()) {
    (*lease)->quota_ = quota;
  } else {
    quota->GiveBack(size);
  }
  return lease;
}

absl::StatusOr<std::shared_ptr<PoolLease>> Pool::AllocateUncounted(
    uint64_t size) {
  base::MutexLock lock(&mu_);
  std::shared_ptr<PoolLease> lease = AllocateLocked(size);
  if (lease != nullptr) return lease;
  absl::Status grown = GrowLocked(size);
  if (!grown.ok()) return grown;
  return AllocateLocked(size);
}

std::shared_ptr<PoolLease> Pool::AllocateLocked(uint64_t size) {
  for (size_t i = 0; i < segments_.size(); ++i) {
    Segment& segment = segments_[i];
    const absl::optional<uint64_t> offset = segment.ranges.Allocate(size);
    if (!offset.has_value()) continue;
    std::shared_ptr<PoolLease> lease(new PoolLease());
    lease->pool_ = shared_from_this();
    lease->segment_ = i;
    lease->offset_ = *offset;
    lease->data_ = segment.mapping->data + *offset;
    lease->size_ = size;
    lease->region_ = segment.region.get();
    used_.Add(size);
    return lease;
  }
  return nullptr;
}

absl::Status Pool::GrowLocked(uint64_t size) {
  const uint64_t left = budget_ - registered_;
  if (size > left) return TooMuch(budget_);
  // Doubles the pool. A pool starts small, because a connection may never see a
  // large message.
  const uint64_t wanted =
      std::max(size, std::min({left, registered_, kMaxSegmentBytes}));
  absl::Status added = AddSegmentLocked(wanted, left);
  // Tries with just the needed size, because the limit of locked memory may not
  // allow more.
  if (!added.ok() && wanted > size) added = AddSegmentLocked(size, left);
  return added;
}

absl::Status Pool::AddSegmentLocked(uint64_t size, uint64_t left) {
  auto mapping = absl::make_unique<Mapping>(RoundUpToPages(size));
  if (mapping->data == nullptr) {
    return absl::ResourceExhaustedError("no memory for a registered segment");
  }
  absl::StatusOr<MemoryRegion> region =
      RegMr(api_, domain_->get(), mapping->data, mapping->size, access_);
  if (!region.ok()) return region.status();
  registered_ += std::min(left, mapping->size);
  reserved_.Set(registered_);
  memory::RangeAllocator ranges(mapping->size);
  segments_.push_back(
      Segment{std::move(mapping), *std::move(region), std::move(ranges)});
  return absl::OkStatus();
}

ibv_mr* Pool::FindRegion(const uint8_t* data, uint64_t size) const {
  base::MutexLock lock(&mu_);
  for (const Segment& segment : segments_) {
    const uint8_t* begin = segment.mapping->data;
    if (data >= begin && data + size <= begin + segment.mapping->size) {
      return segment.region.get();
    }
  }
  return nullptr;
}

uint64_t Pool::registered_bytes() const {
  base::MutexLock lock(&mu_);
  return registered_;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
