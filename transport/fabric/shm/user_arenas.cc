#include "transport/fabric/shm/user_arenas.h"

#include <unistd.h>

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/mutex.h"
#include "transport/base/per_process.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

using Arenas = std::map<uid_t, std::shared_ptr<Arena>>;

constexpr uint64_t kShareOfOthers = 4;

absl::StatusOr<std::shared_ptr<Arena>> FindOrAdd(Arenas* arenas, uid_t uid,
                                                 HugePages huge_pages,
                                                 uint64_t bytes) {
  auto it = arenas->find(uid);
  if (it != arenas->end()) return it->second;
  const bool is_own = uid == geteuid();
  const size_t others = arenas->size() - arenas->count(geteuid());
  if (!is_own && others >= kMaxOtherUsers) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no shared memory for uid ", uid, ": this process has ",
                     others, " other users' already, which is the limit"));
  }
  const uint64_t budget = bytes == 0 ? Arena::DefaultBudget() : bytes;
  // Keeps all segments in the arena of another user. Otherwise a peer that
  // keeps returned segments mapped could make the memory exceed the budget.
  std::shared_ptr<Arena> arena =
      is_own ? Arena::Create(budget, huge_pages, Arena::kIdleTime)
             : Arena::Create(budget / kShareOfOthers, huge_pages);
  arenas->emplace(uid, arena);
  return arena;
}

// The arenas of this process. The child of a fork makes new ones. If the child
// used the parent's arenas, both processes would allocate the same bytes.
struct Shared {
  base::Mutex mu;
  Arenas arenas ABSL_GUARDED_BY(mu);
};

}  // namespace

absl::StatusOr<std::shared_ptr<Arena>> ArenaFor(uid_t uid, HugePages huge_pages,
                                                uint64_t bytes) {
  Shared* const shared = base::PerProcess<Shared>::Get();
  base::MutexLock lock(&shared->mu);
  return FindOrAdd(&shared->arenas, uid, huge_pages, bytes);
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
