#include "transport/fabric/shm/arena.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "transport/progress/aside.h"
#include "transport/progress/event_loop.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;
constexpr uint64_t kFirstSegmentBytes = 16 * kMiB;
// Limits the size of one growth step. Clearing this many bytes takes 50 to 150
// ms. No request waits longer for growth, unless the request itself is larger.
constexpr uint64_t kMaxStepBytes = 256 * kMiB;
// The arena prepares its next segment while less than this fraction (1 / n) of
// the memory is free.
constexpr uint64_t kSpareShare = 4;
constexpr uint64_t kMaxDefaultBudget = 1024 * kMiB;

uint64_t MachineMemory() {
  struct sysinfo info;
  if (sysinfo(&info) != 0) return 0;
  return static_cast<uint64_t>(info.totalram) * info.mem_unit;
}

uint64_t WholeHugePages(uint64_t size) {
  return (size + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

// Returns true if `used` of `reserved` bytes leave too little for new requests.
bool IsScarce(uint64_t used, uint64_t reserved) {
  return used > reserved || reserved - used < reserved / kSpareShare;
}

// Returns the memory limit of this process's control group, as seen in a
// container. Returns 0 if there is no limit.
uint64_t ControlGroupLimit() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  std::string line;
  std::getline(file, line);
  uint64_t limit = 0;
  return absl::SimpleAtoi(line, &limit) ? limit : 0;
}

}  // namespace

ArenaLease::ArenaLease(std::shared_ptr<Arena> arena, ArenaSegment* segment,
                       uint64_t offset, uint64_t size)
    : arena_(std::move(arena)),
      segment_(segment),
      offset_(offset),
      size_(size) {}

ArenaLease::~ArenaLease() { arena_->Free(*this); }

uint8_t* ArenaLease::data() const { return segment_->memory.data() + offset_; }

Place ArenaLease::place() const { return segment_->At(offset_); }

uint64_t Arena::DefaultBudget() {
  uint64_t memory = MachineMemory();
  const uint64_t limit = ControlGroupLimit();
  if (limit > 0) memory = std::min(memory, limit);
  return std::min(kMaxDefaultBudget, memory / 4);
}

constexpr absl::Duration Arena::kIdleTime;

std::shared_ptr<Arena> Arena::Create(uint64_t budget, HugePages huge_pages,
                                     absl::Duration idle_time) {
  return std::shared_ptr<Arena>(new Arena(budget, huge_pages, idle_time));
}

Arena::Arena(uint64_t budget, HugePages huge_pages, absl::Duration idle_time)
    : limit_(metrics::Metric::kPoolLimit, {metrics::Pool::kShm}, budget),
      used_(metrics::Metric::kPoolUsed, {metrics::Pool::kShm}),
      reserved_(metrics::Metric::kPoolReserved, {metrics::Pool::kShm}),
      idle_time_(idle_time),
      fork_count_(progress::ForkCount()),
      budget_(budget),
      maker_(huge_pages) {}

Arena::~Arena() = default;

void Arena::RaiseBudget(uint64_t budget) {
  base::MutexLock lock(&mu_);
  if (budget <= budget_) return;
  budget_ = budget;
  limit_.Set(budget);
}

uint64_t Arena::budget() const {
  base::MutexLock lock(&mu_);
  return budget_;
}

bool Arena::IsForeign() const { return fork_count_ != progress::ForkCount(); }

absl::StatusOr<std::shared_ptr<ArenaLease>> Arena::Allocate(uint64_t size) {
  if (IsForeign()) {
    return absl::ResourceExhaustedError(
        "the shared memory belongs to the process that this one was forked "
        "from");
  }
  base::MutexLock lock(&mu_);
  for (;;) {
    std::shared_ptr<ArenaLease> lease = LeaseLocked(size);
    if (lease != nullptr) {
      if (IsScarceLocked()) PrepareLocked();
      return lease;
    }
    if (is_growing_) {
      has_grown_.wait(mu_);
      continue;
    }
    absl::Status grown = GrowLocked(size);
    if (!grown.ok()) return grown;
  }
}

// Leases memory in any segment. Returns null if no segment has room.
std::shared_ptr<ArenaLease> Arena::LeaseLocked(uint64_t size) {
  for (const std::unique_ptr<ArenaSegment>& segment : segments_) {
    std::shared_ptr<ArenaLease> lease = LeaseInLocked(segment.get(), size);
    if (lease != nullptr) return lease;
  }
  return nullptr;
}

// Leases memory in `segment`. Returns null if the segment has no room.
std::shared_ptr<ArenaLease> Arena::LeaseInLocked(ArenaSegment* segment,
                                                 uint64_t size) {
  const absl::optional<uint64_t> offset = segment->ranges.Allocate(size);
  if (!offset.has_value()) return nullptr;
  segment->was_used = true;
  used_.Add(size);
  return std::shared_ptr<ArenaLease>(
      new ArenaLease(shared_from_this(), segment, *offset, size));
}

absl::optional<Place> Arena::Find(const uint8_t* data, uint64_t size) const {
  // Returns nothing in a forked child, because peers of the child cannot see
  // its writes to the arena.
  if (IsForeign()) return absl::nullopt;
  const auto address = reinterpret_cast<uintptr_t>(data);
  base::MutexLock lock(&mu_);
  for (const std::unique_ptr<ArenaSegment>& segment : segments_) {
    const auto begin = reinterpret_cast<uintptr_t>(segment->memory.data());
    const uint64_t segment_size = segment->memory.size();
    if (address < begin || address - begin >= segment_size) continue;
    if (size > segment_size - (address - begin)) return absl::nullopt;
    return segment->At(address - begin);
  }
  return absl::nullopt;
}

uint64_t Arena::NextStepLocked() const {
  uint64_t step = kFirstSegmentBytes;
  for (size_t i = 0; i < segments_.size() && step < kMaxStepBytes; ++i) {
    step *= 2;
  }
  return step;
}

absl::Status Arena::GrowLocked(uint64_t size) {
  const uint64_t left = budget_ - ReservedLocked();
  if (size > left) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no ", size, " bytes of shared memory left of the ",
                     budget_, " that this process may use"));
  }
  uint64_t wanted = std::max(size, std::min(NextStepLocked(), left));
  if (WholeHugePages(wanted) <= left) wanted = WholeHugePages(wanted);
  is_growing_ = true;
  mu_.Unlock();
  absl::StatusOr<std::unique_ptr<ArenaSegment>> segment = maker_.Make(wanted);
  mu_.Lock();
  is_growing_ = false;
  has_grown_.notify_all();
  if (!segment.ok()) return segment.status();
  segments_.push_back(*std::move(segment));
  reserved_.Set(ReservedLocked());
  return absl::OkStatus();
}

bool Arena::IsScarceLocked() const {
  return IsScarce(UsedLocked(), ReservedLocked());
}

bool Arena::MayPrepareLocked() const {
  return budget_ - ReservedLocked() >= 2 * NextStepLocked();
}

void Arena::PrepareLocked() {
  if (is_preparing_ || is_growing_ || !MayPrepareLocked()) return;
  is_preparing_ = true;
  std::weak_ptr<Arena> weak = shared_from_this();
  progress::RunAside(progress::Aside::kMemory, [weak] {
    if (std::shared_ptr<Arena> arena = weak.lock()) arena->PrepareAside();
  });
}

void Arena::PrepareAside() {
  base::MutexLock lock(&mu_);
  is_preparing_ = false;
  if (is_growing_ || !IsScarceLocked() || !MayPrepareLocked()) return;
  // Ignores a failure: a request that needs the memory gets the error.
  if (GrowLocked(/*size=*/0).ok()) LookSoonLocked();
}

void Arena::Free(const ArenaLease& lease) {
  if (IsForeign()) return;
  base::MutexLock lock(&mu_);
  ArenaSegment* const segment = lease.segment_;
  segment->ranges.Free(lease.offset_, lease.size_);
  used_.Subtract(lease.size_);
  if (segment->ranges.used() == 0 && segment != segments_.front().get()) {
    LookSoonLocked();
  }
}

void Arena::LookSoonLocked() {
  if (will_look_ || idle_time_ == absl::InfiniteDuration()) return;
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) return;
  std::weak_ptr<Arena> weak = shared_from_this();
  will_look_ = (*loop)->RunAfter(idle_time_, [weak] {
    if (std::shared_ptr<Arena> arena = weak.lock()) arena->GiveBackOnLoop();
  }) != 0;
}

void Arena::GiveBackOnLoop() {
  auto idle = std::make_shared<Segments>();
  std::vector<std::shared_ptr<ArenaWatcher>> watchers;
  {
    base::MutexLock lock(&mu_);
    will_look_ = false;
    *idle = TakeIdleLocked();
    if (!idle->empty()) watchers = LivingWatchersLocked();
  }
  for (const std::unique_ptr<ArenaSegment>& segment : *idle) {
    for (const auto& watcher : watchers) watcher->OnGivenBack(segment->id);
  }
  // Unmaps on another thread, because freeing pages, and waiting for devices to
  // release them, takes long.
  if (!idle->empty())
    progress::RunAside(progress::Aside::kMemory, [idle] { idle->clear(); });
}

Arena::Segments Arena::TakeIdleLocked() {
  Segments idle;
  Segments kept;
  const uint64_t used = UsedLocked();
  uint64_t reserved = ReservedLocked();
  for (std::unique_ptr<ArenaSegment>& segment : segments_) {
    const bool is_empty = segment->ranges.used() == 0;
    const bool was_used = std::exchange(segment->was_used, false);
    const uint64_t rest = reserved - std::min(reserved, segment->memory.size());
    if (kept.empty() || !is_empty || was_used || IsScarce(used, rest)) {
      if (!kept.empty() && is_empty) LookSoonLocked();
      kept.push_back(std::move(segment));
    } else {
      reserved = rest;
      idle.push_back(std::move(segment));
    }
  }
  segments_ = std::move(kept);
  reserved_.Set(ReservedLocked());
  return idle;
}

void Arena::AddWatcher(std::weak_ptr<ArenaWatcher> watcher) {
  base::MutexLock lock(&mu_);
  if (watchers_.size() >= 2 * living_watchers_) (void)LivingWatchersLocked();
  watchers_.push_back(std::move(watcher));
}

void Arena::ReclaimLoans() {
  if (IsForeign()) return;
  std::vector<std::shared_ptr<ArenaWatcher>> watchers;
  {
    base::MutexLock lock(&mu_);
    watchers = LivingWatchersLocked();
  }
  for (const auto& watcher : watchers) watcher->ReclaimLoans();
}

std::vector<std::shared_ptr<ArenaWatcher>> Arena::LivingWatchersLocked() {
  std::vector<std::shared_ptr<ArenaWatcher>> living;
  auto is_gone = [&living](const std::weak_ptr<ArenaWatcher>& watcher) {
    living.push_back(watcher.lock());
    if (living.back() != nullptr) return false;
    living.pop_back();
    return true;
  };
  watchers_.erase(std::remove_if(watchers_.begin(), watchers_.end(), is_gone),
                  watchers_.end());
  living_watchers_ = std::max<size_t>(living.size(), 1);
  return living;
}

uint64_t Arena::used() const {
  base::MutexLock lock(&mu_);
  return UsedLocked();
}

uint64_t Arena::reserved() const {
  base::MutexLock lock(&mu_);
  return ReservedLocked();
}

uint64_t Arena::UsedLocked() const {
  uint64_t used = 0;
  for (const auto& segment : segments_) used += segment->ranges.used();
  return used;
}

uint64_t Arena::ReservedLocked() const {
  uint64_t reserved = 0;
  for (const auto& segment : segments_) reserved += segment->memory.size();
  // Returns at most the budget, which rounding up to pages may slightly exceed.
  return std::min(budget_, reserved);
}

std::string Arena::Describe() const {
  base::MutexLock lock(&mu_);
  if (maker_.huge_pages() != HugePages::kReserved || segments_.empty()) {
    return "";
  }
  uint64_t in_reserved_pages = 0;
  for (const auto& segment : segments_) {
    if (!segment->has_reserved_pages) continue;
    in_reserved_pages += segment->memory.size();
  }
  return absl::StrCat(in_reserved_pages / kMiB, " of ", ReservedLocked() / kMiB,
                      " MiB in reserved huge pages");
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
