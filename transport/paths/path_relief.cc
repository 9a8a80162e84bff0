#include "transport/paths/path_relief.h"

#include <pthread.h>

#include <memory>

#include "transport/progress/event_loop.h"

namespace penstock {
namespace paths {
namespace {

// Caps the connections that may begin between two checks of the descriptors, if
// the first check found room for paths. Eight connections take far fewer
// descriptors than were free then.
constexpr int kUnseen = 8;

std::atomic<PathRelief*> current{nullptr};
std::atomic<int> unseen{0};  // connections that may begin before the next check

// Returns the number of paths to close. Returns 0 if no check is due.
int64_t ExcessIfDue() {
  if (unseen.fetch_sub(1, std::memory_order_relaxed) > 0) return 0;
  const base::Descriptors now = base::Descriptors::Now();
  unseen.store(now.HasRoomForPath() ? kUnseen : 0, std::memory_order_relaxed);
  return now.Excess();
}

// Forgets the parent's instance in a forked child. The parent's paths do not
// belong to the child, and a thread of the parent may hold the lock.
void ForgetInChild() { current.store(nullptr); }

// Registers before main(), for the reason in base::PerProcess.
const int registered = pthread_atfork(nullptr, nullptr, &ForgetInChild);

}  // namespace

PathRelief* PathRelief::Get() {
  PathRelief* relief = current.load(std::memory_order_acquire);
  if (relief != nullptr) return relief;
  auto made = std::make_unique<PathRelief>();
  if (current.compare_exchange_strong(relief, made.get())) {
    return made.release();
  }
  return relief;
}

PathRelief::Id PathRelief::Add(Owner* owner) {
  base::MutexLock lock(&mu_);
  owners_[next_id_] = owner;
  return next_id_++;
}

void PathRelief::Remove(Id id) {
  base::MutexLock lock(&mu_);
  owners_.erase(id);
}

void PathRelief::OnConnection() {
  if (ExcessIfDue() == 0 || scheduled_.exchange(true)) return;
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) {  // without a loop there are no paths
    scheduled_ = false;
    return;
  }
  // Calls Relieve() on the event loop, because the caller holds locks, and
  // owners take locks of their own.
  (*loop)->Post([this] {
    scheduled_ = false;
    Relieve(base::Descriptors::Now());
  });
}

void PathRelief::Relieve(const base::Descriptors& now) {
  const std::vector<Owner*> chosen = Choose(now.Excess());
  for (Owner* owner : chosen) owner->GiveUpPath(now.Scarce());
  if (chosen.empty()) return;
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  const auto count = static_cast<int64_t>(chosen.size());
  const auto closed = [this, count] {
    base::MutexLock lock(&mu_);
    closing_ -= count;
  };
  if (loop.ok()) {
    (*loop)->RunAfter(closing_time_, closed);
  } else {
    closed();
  }
}

std::vector<PathRelief::Owner*> PathRelief::Choose(int64_t excess) {
  std::vector<Owner*> chosen;
  base::MutexLock lock(&mu_);
  const int64_t count = excess - closing_;
  for (auto it = owners_.rbegin();
       it != owners_.rend() && static_cast<int64_t>(chosen.size()) < count;
       ++it) {
    it->second->Ref();
    chosen.push_back(it->second);
  }
  closing_ += static_cast<int64_t>(chosen.size());
  return chosen;
}

}  // namespace paths
}  // namespace penstock
