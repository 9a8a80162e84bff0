#include "transport/fabric/shm/arena.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "transport/base/log.h"
#include "transport/base/steady_time.h"
#include "transport/fabric/shm/private_in_child.h"
#include "transport/memory/stable_memory.h"
#include "transport/progress/aside.h"
#include "transport/progress/event_loop.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr char kSegmentName[] = "penstock-arena";
constexpr uint64_t kMiB = 1024 * 1024;
constexpr uint64_t kFirstSegmentBytes = 16 * kMiB;
// Limits the size of one growth step. Clearing this many bytes takes about 50
// ms. No request waits longer for growth, unless the request itself is larger.
constexpr uint64_t kMaxStepBytes = 256 * kMiB;
constexpr uint64_t kMaxDefaultBudget = 1024 * kMiB;
// The amount of memory over which messages rotate. Memory that another core has
// just read costs more to write than memory that has left that core's
// first-level cache. About as much as second-level caches hold in addition to
// the application's data.
constexpr uint64_t kRovingBytes = kMiB;
// The pause after a failed attempt to grow, which may have cleared most of a
// segment first. Without the pause, each large message would cause another
// attempt.
constexpr absl::Duration kGrowthPause = absl::Seconds(1);

// Process-wide, so that a peer of two arenas never sees the same id twice.
std::atomic<uint32_t> next_segment_id{1};

uint64_t MachineMemory() {
  struct sysinfo info;
  if (sysinfo(&info) != 0) return 0;
  return static_cast<uint64_t>(info.totalram) * info.mem_unit;
}

uint64_t WholeHugePages(uint64_t size) {
  return (size + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
}

// Returns the memory limit of this process's own control group, as a container
// sees it. 0: none.
uint64_t ControlGroupLimit() {
  std::ifstream file("/sys/fs/cgroup/memory.max");
  std::string line;
  std::getline(file, line);
  uint64_t limit = 0;
  return absl::SimpleAtoi(line, &limit) ? limit : 0;
}

}  // namespace

struct ArenaSegment {
  ArenaSegment(Segment segment, uint32_t id, bool has_reserved_pages)
      : memory(std::move(segment)),
        id(id),
        has_reserved_pages(has_reserved_pages),
        private_in_child(memory, has_reserved_pages),
        ranges(memory.size(), kRovingBytes) {
    // Lets an RDMA device keep the memory registered. Otherwise it is
    // registered for each use.
    auto declared = memory::StableMemory::Declare(memory.data(), memory.size());
    if (declared.ok()) stable = *std::move(declared);
  }

  Place At(uint64_t offset) const {
    Place place;
    place.segment_id = id;
    place.segment_fd = memory.fd();
    place.segment_size = memory.size();
    place.offset = offset;
    return place;
  }

  const Segment memory;
  const uint32_t id;
  const bool has_reserved_pages;
  // Both members end before `memory`.
  PrivateInChild private_in_child;
  std::unique_ptr<memory::StableMemory> stable;
  // Guarded by the arena's mutex:
  memory::RangeAllocator ranges;
  bool was_used = false;  // since the last look
};

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
    : budget_(budget),
      limit_(metrics::Metric::kPoolLimit, {metrics::Pool::kShm}, budget),
      used_(metrics::Metric::kPoolUsed, {metrics::Pool::kShm}),
      reserved_(metrics::Metric::kPoolReserved, {metrics::Pool::kShm}),
      huge_pages_(huge_pages),
      idle_time_(idle_time),
      fork_count_(progress::ForkCount()) {}

Arena::~Arena() = default;

bool Arena::IsForeign() const { return fork_count_ != progress::ForkCount(); }

absl::StatusOr<std::shared_ptr<ArenaLease>> Arena::Allocate(uint64_t size) {
  if (IsForeign()) {
    return absl::ResourceExhaustedError(
        "the shared memory belongs to the process that this one was forked "
        "from");
  }
  base::MutexLock lock(&mu_);
  for (const std::unique_ptr<ArenaSegment>& segment : segments_) {
    std::shared_ptr<ArenaLease> lease = LeaseInLocked(segment.get(), size);
    if (lease != nullptr) return lease;
  }
  absl::StatusOr<ArenaSegment*> segment = GrowLocked(size);
  if (!segment.ok()) return segment.status();
  return LeaseInLocked(*segment, size);
}

// Returns null if the segment has no room.
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
  // Peers of a child do not see the child's writes there.
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

absl::StatusOr<ArenaSegment*> Arena::GrowLocked(uint64_t size) {
  const uint64_t left = budget_ - ReservedLocked();
  if (size > left) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no ", size, " bytes of shared memory left of the ",
                     budget_, " that this process may use"));
  }
  uint64_t step = kFirstSegmentBytes;
  for (size_t i = 0; i < segments_.size() && step < kMaxStepBytes; ++i) {
    step *= 2;
  }
  uint64_t wanted = std::max(size, std::min(step, left));
  if (WholeHugePages(wanted) <= left) wanted = WholeHugePages(wanted);
  absl::StatusOr<std::unique_ptr<ArenaSegment>> segment =
      NewSegmentLocked(wanted);
  if (!segment.ok()) return segment.status();
  segments_.push_back(*std::move(segment));
  reserved_.Set(ReservedLocked());
  return segments_.back().get();
}

absl::StatusOr<std::unique_ptr<ArenaSegment>> Arena::NewSegmentLocked(
    uint64_t size) {
  const absl::Time now = base::SteadyNow();
  if (now < next_growth_) return no_memory_;
  absl::StatusOr<std::unique_ptr<ArenaSegment>> segment =
      CreateSegmentLocked(size);
  if (!segment.ok()) {
    no_memory_ = segment.status();
    next_growth_ = now + kGrowthPause;
  }
  return segment;
}

absl::StatusOr<std::unique_ptr<ArenaSegment>> Arena::CreateSegmentLocked(
    uint64_t size) {
  // The rest of the budget may be less than a whole huge page.
  bool is_reserved =
      huge_pages_ == HugePages::kReserved && size % kHugePageBytes == 0;
  absl::StatusOr<Segment> memory = absl::UnknownError("none");
  if (is_reserved) {
    memory = Segment::Create(kSegmentName, size, HugePages::kReserved);
    if (!memory.ok()) SayWhyNotReservedLocked(memory.status());
    is_reserved = memory.ok();
  }
  if (!is_reserved) {
    memory = Segment::Create(kSegmentName, size,
                             huge_pages_ == HugePages::kOff
                                 ? HugePages::kOff
                                 : HugePages::kTransparent);
  }
  if (!memory.ok()) return memory.status();
  return absl::make_unique<ArenaSegment>(
      *std::move(memory),
      next_segment_id.fetch_add(1, std::memory_order_relaxed), is_reserved);
}

void Arena::SayWhyNotReservedLocked(const absl::Status& cause) {
  if (said_why_not_) return;
  said_why_not_ = true;
  base::LogWarning(absl::StrCat(
      "large messages over shm have no reserved huge pages: ", cause.message(),
      "; ordinary pages are used"));
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
  for (std::unique_ptr<ArenaSegment>& segment : segments_) {
    const bool is_empty = segment->ranges.used() == 0;
    const bool was_used = std::exchange(segment->was_used, false);
    if (kept.empty() || !is_empty || was_used) {
      if (!kept.empty() && is_empty) LookSoonLocked();
      kept.push_back(std::move(segment));
    } else {
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
  uint64_t used = 0;
  for (const auto& segment : segments_) used += segment->ranges.used();
  return used;
}

uint64_t Arena::reserved() const {
  base::MutexLock lock(&mu_);
  return ReservedLocked();
}

uint64_t Arena::ReservedLocked() const {
  uint64_t reserved = 0;
  for (const auto& segment : segments_) reserved += segment->memory.size();
  // Rounding up to pages may slightly exceed the budget.
  return std::min(budget_, reserved);
}

std::string Arena::Describe() const {
  base::MutexLock lock(&mu_);
  if (huge_pages_ != HugePages::kReserved || segments_.empty()) return "";
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
