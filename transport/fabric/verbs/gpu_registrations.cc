#include "transport/fabric/verbs/gpu_registrations.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/memory/memory.h"
#include "transport/base/steady_time.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// An allocation is registered as a whole if it takes at most this fraction (1 /
// n) of the budget.
constexpr uint64_t kWholeAllocationPart = 2;
// The page size of GPUs. Regions in an allocation begin and end at a page, so
// that a lookup for adjacent bytes finds the same region.
constexpr uint64_t kGpuPageBytes = 64 * 1024;

absl::Status CopyCostsLess() {
  return absl::FailedPreconditionError("copying it costs less");
}

}  // namespace

bool GpuRegistrations::Entry::Covers(absl::Span<const uint8_t> other) const {
  return range.begin() <= other.begin() && other.end() <= range.end();
}

bool GpuRegistrations::Entry::Overlaps(absl::Span<const uint8_t> other) const {
  return range.begin() < other.end() && other.begin() < range.end();
}

// A destination for READs, which lasts as long as this object.
class GpuRegistrations::Prepared {
 public:
  Prepared(std::shared_ptr<GpuRegistrations> owner,
           const memory::Destination& into, SharedRegistration region)
      : owner_(std::move(owner)),
        range_(into.data, into.size),
        target_{std::move(region), into.device} {
    base::MutexLock lock(&owner_->mu_);
    owner_->prepared_.push_back(this);
    ++owner_->prepared_count_;
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  ~Prepared() {
    base::MutexLock lock(&owner_->mu_);
    auto& all = owner_->prepared_;
    all.erase(std::find(all.begin(), all.end(), this));
    --owner_->prepared_count_;
  }

  bool Covers(const uint8_t* data, size_t size) const {
    return range_.data() <= data && data + size <= range_.end();
  }
  const Target& target() const { return target_; }

 private:
  const std::shared_ptr<GpuRegistrations> owner_;
  const absl::Span<const uint8_t> range_;
  const Target target_;
};

std::shared_ptr<GpuRegistrations> GpuRegistrations::Create(
    std::shared_ptr<const ProtectionDomain> domain,
    std::shared_ptr<GpuDirect> direct, int access, GpuKeeping keeping) {
  return absl::WrapUnique(new GpuRegistrations(
      std::move(domain), std::move(direct), access, keeping));
}

GpuRegistrations::GpuRegistrations(
    std::shared_ptr<const ProtectionDomain> domain,
    std::shared_ptr<GpuDirect> direct, int access, GpuKeeping keeping)
    : domain_(std::move(domain)),
      direct_(std::move(direct)),
      access_(access),
      fork_count_(progress::ForkCount()),
      keeping_(keeping),
      limit_(metrics::Metric::kCacheLimit, {}, keeping.bytes),
      kept_(metrics::Metric::kCacheUsed, {}),
      hits_(metrics::Metric::kCacheHits, {}),
      misses_(metrics::Metric::kCacheMisses, {}),
      evictions_(metrics::Metric::kCacheEvictions, {}) {}

// Leaves the domain and its regions to the parent, in a forked child.
GpuRegistrations::~GpuRegistrations() {
  if (fork_count_ == progress::ForkCount()) return;
  new std::shared_ptr<const ProtectionDomain>(std::move(domain_));
}

absl::StatusOr<GpuRegistrations::ToSend> GpuRegistrations::GetToSend(
    const memory::Bytes& bytes, size_t least_unnamed) {
  absl::StatusOr<Piece> piece = Look(GpuUse::kSend, bytes, least_unnamed);
  if (!piece.ok()) return piece.status();
  if (piece->reach->way(GpuUse::kSend) == GpuWay::kDmabuf &&
      bytes.size < keeping_.least_alone) {
    return CopyCostsLess();
  }
  ToSend made;
  absl::Status status =
      piece->reach->Register(GpuUse::kSend, [&](GpuWay way, bool is_trial) {
        made.by_key = way == GpuWay::kDmabuf;
        absl::StatusOr<SharedRegistration> region =
            made.by_key ? MakeForPeers(bytes) : Get(way, *piece, is_trial);
        if (!region.ok()) return region.status();
        made.region = *std::move(region);
        if (!is_trial) return absl::OkStatus();
        ibv_mr* const mr = made.region->region();
        return made.by_key ? direct_->TryKey(domain_, mr, bytes)
                           : direct_->TryWindow(domain_, mr, bytes);
      });
  if (!status.ok()) return status;
  return made;
}

absl::StatusOr<SharedRegistration> GpuRegistrations::GetToReceive(
    const memory::Destination& into, size_t least_unnamed) {
  const memory::Bytes bytes{into.data, into.size, nullptr, into.device};
  absl::StatusOr<Piece> piece = Look(GpuUse::kReceive, bytes, least_unnamed);
  if (!piece.ok()) return piece.status();
  // Flushes once now. If this fails, the caller can still choose other memory
  // to read into.
  absl::Status seen = into.device->FlushWrites(bytes.span());
  if (!seen.ok()) return seen;
  SharedRegistration made;
  absl::Status status =
      piece->reach->Register(GpuUse::kReceive, [&](GpuWay way, bool is_trial) {
        absl::StatusOr<SharedRegistration> region = Get(way, *piece, is_trial);
        if (!region.ok()) return region.status();
        made = *std::move(region);
        if (!is_trial) return absl::OkStatus();
        return direct_->TryLanding(domain_, made->region(), into);
      });
  if (!status.ok()) return status;
  return made;
}

absl::StatusOr<GpuRegistrations::Piece> GpuRegistrations::Look(
    GpuUse use, const memory::Bytes& bytes, size_t least_unnamed) {
  Piece piece;
  piece.bytes = bytes;
  absl::StatusOr<memory::SharedAllocation> allocation =
      bytes.device->Share(bytes.span());
  const bool is_named = allocation.ok() && bytes.size <= allocation->size &&
                        allocation->offset <= allocation->size - bytes.size;
  if (!is_named && bytes.size <= least_unnamed) return CopyCostsLess();
  if (is_named) piece.allocation = *std::move(allocation);
  absl::StatusOr<GpuReach*> reach = direct_->ReachOf(bytes, is_named);
  if (!reach.ok()) return reach.status();
  piece.reach = *reach;
  absl::Status may_be = piece.reach->Check(use);
  if (!may_be.ok()) return may_be;
  return piece;
}

absl::StatusOr<SharedRegistration> GpuRegistrations::Get(GpuWay way,
                                                         const Piece& piece,
                                                         bool is_trial) {
  if (piece.allocation.has_value()) {
    base::MutexLock lock(&mu_);
    SharedRegistration found = FindLocked(way, piece);
    if (found != nullptr) {
      ++counters_.hits;
      hits_.Add(1);
      return found;
    }
  }
  absl::StatusOr<SharedRegistration> made = Make(way, piece, is_trial);
  if (made.ok()) CountMiss();
  return made;
}

SharedRegistration GpuRegistrations::FindLocked(GpuWay way,
                                                const Piece& piece) {
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    if (it->way != way || it->gpu != piece.bytes.device ||
        it->id != piece.allocation->id || !it->Covers(piece.bytes.span())) {
      continue;
    }
    it->last_use = base::SteadyNow();
    entries_.splice(entries_.begin(), entries_, it);
    return it->region;
  }
  return nullptr;
}

void GpuRegistrations::CountMiss() {
  base::MutexLock lock(&mu_);
  ++counters_.misses;
  misses_.Add(1);
}

absl::StatusOr<SharedRegistration> GpuRegistrations::Make(GpuWay way,
                                                          const Piece& piece,
                                                          bool is_trial) {
  const memory::Bytes& bytes = piece.bytes;
  if (!piece.allocation.has_value()) {
    return RegisterRange(way, bytes.device, bytes.span());
  }
  Entry entry;
  entry.gpu = bytes.device;
  entry.id = piece.allocation->id;
  entry.way = way;
  entry.range = absl::MakeConstSpan(bytes.data - piece.allocation->offset,
                                    piece.allocation->size);
  absl::StatusOr<SharedRegistration> region;
  const bool of_all =
      !is_trial && entry.range.size() <= keeping_.bytes / kWholeAllocationPart;
  if (of_all) region = RegisterRange(way, bytes.device, entry.range);
  if (!of_all || !region.ok()) {
    entry.range = PagesOf(piece);
    region = RegisterRange(way, bytes.device, entry.range);
  }
  if (!region.ok()) return region;
  entry.region = *std::move(region);
  return Keep(std::move(entry));
}

absl::Span<const uint8_t> GpuRegistrations::PagesOf(const Piece& piece) {
  const memory::SharedAllocation& allocation = *piece.allocation;
  const uint64_t begin = allocation.offset / kGpuPageBytes * kGpuPageBytes;
  const uint64_t end = allocation.offset + piece.bytes.size;
  const uint64_t beyond = (kGpuPageBytes - end % kGpuPageBytes) % kGpuPageBytes;
  return absl::MakeConstSpan(
      piece.bytes.data - (allocation.offset - begin),
      std::min<uint64_t>(allocation.size, end + beyond) - begin);
}

absl::StatusOr<SharedRegistration> GpuRegistrations::RegisterRange(
    GpuWay way, memory::DeviceAccess* gpu, absl::Span<const uint8_t> range) {
  return Register([&] {
    return direct_->Register(way, domain_->get(), gpu, range, access_);
  });
}

absl::StatusOr<SharedRegistration> GpuRegistrations::MakeForPeers(
    const memory::Bytes& bytes) {
  absl::StatusOr<SharedRegistration> made = Register([&] {
    return direct_->RegisterForPeers(domain_->get(), bytes.device,
                                     bytes.span());
  });
  if (made.ok()) CountMiss();
  return made;
}

absl::StatusOr<SharedRegistration> GpuRegistrations::Register(
    absl::FunctionRef<absl::StatusOr<MemoryRegion>()> make) {
  absl::StatusOr<MemoryRegion> region = make();
  // Frees idle regions and retries: a GPU's window to the bus may be full, and
  // idle regions also use it.
  if (absl::IsResourceExhausted(region.status()) && EndIdle()) region = make();
  if (!region.ok()) return region.status();
  return std::make_shared<const Registration>(domain_, nullptr,
                                              *std::move(region));
}

SharedRegistration GpuRegistrations::Keep(Entry entry) {
  Entries over;  // ended after the lock, unless in use
  base::MutexLock lock(&mu_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto next = std::next(it);
    const bool is_overtaken =
        it->gpu == entry.gpu && it->id != entry.id && it->Overlaps(entry.range);
    if (is_overtaken) RemoveLocked(it, &over);
    it = next;
  }
  SharedRegistration region = entry.region;
  const uint64_t size = entry.range.size();
  if (!EvictLocked(size, &over)) return region;
  counters_.kept_bytes += size;
  kept_.Add(size);
  entry.last_use = base::SteadyNow();
  entries_.push_front(std::move(entry));
  return region;
}

void GpuRegistrations::RemoveLocked(Entries::iterator entry, Entries* out) {
  counters_.kept_bytes -= entry->range.size();
  kept_.Subtract(entry->range.size());
  out->splice(out->end(), entries_, entry);
}

bool GpuRegistrations::EvictLocked(uint64_t bytes, Entries* out) {
  if (bytes > keeping_.bytes || keeping_.regions == 0) return false;
  const auto has_room = [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return counters_.kept_bytes <= keeping_.bytes - bytes &&
           entries_.size() < keeping_.regions;
  };
  for (auto it = entries_.end(); !has_room() && it != entries_.begin();) {
    const auto oldest = std::prev(it);
    if (!oldest->is_idle()) {
      it = oldest;
      continue;
    }
    RemoveLocked(oldest, out);
    ++counters_.evictions;
    evictions_.Add(1);
  }
  return has_room();
}

void GpuRegistrations::RemoveIdleLocked(absl::Time used_until, Entries* out) {
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto next = std::next(it);
    if (it->is_idle() && it->last_use <= used_until) RemoveLocked(it, out);
    it = next;
  }
}

bool GpuRegistrations::EndIdle() {
  Entries idle;
  base::MutexLock lock(&mu_);
  RemoveIdleLocked(absl::InfiniteFuture(), &idle);
  counters_.evictions += idle.size();
  evictions_.Add(idle.size());
  return !idle.empty();
}

void GpuRegistrations::OnTick(absl::Time now) {
  Entries idle;
  base::MutexLock lock(&mu_);
  RemoveIdleLocked(now - keeping_.idle, &idle);
}

std::shared_ptr<const void> GpuRegistrations::Prepare(
    const memory::Destination& into, size_t least_unnamed) {
  absl::StatusOr<SharedRegistration> region = GetToReceive(into, least_unnamed);
  if (!region.ok()) return nullptr;
  return std::make_shared<const Prepared>(shared_from_this(), into,
                                          *std::move(region));
}

GpuRegistrations::Target GpuRegistrations::FindPrepared(const uint8_t* data,
                                                        size_t size) const {
  if (prepared_count_ == 0) return Target();
  base::MutexLock lock(&mu_);
  for (const Prepared* prepared : prepared_) {
    if (prepared->Covers(data, size)) return prepared->target();
  }
  return Target();
}

RegistrationCounters GpuRegistrations::counters() const {
  base::MutexLock lock(&mu_);
  return counters_;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
