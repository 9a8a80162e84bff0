#include "transport/pool.h"

#include <unistd.h>

#include <utility>

#include "absl/status/statusor.h"
#include "transport/fabric/shm/huge_pages.h"
#include "transport/fabric/shm/user_arenas.h"
#include "transport/settings/settings.h"
#include "transport/settings/shm_arena.h"

namespace penstock {
namespace {

using fabric::shm::Arena;
using fabric::shm::ArenaLease;
using fabric::shm::HugePages;

// Returns the kind of pages from the settings. Ignores a bad value: the first
// channel or server logs it.
HugePages PagesOfPool() {
  static const HugePages pages =
      ResolveShmHugePages().value_or(HugePages::kTransparent);
  return pages;
}

uint64_t LimitOfPool() {
  static const uint64_t bytes = ResolveShmArenaBytes().value_or(0);
  return bytes;
}

absl::StatusOr<std::shared_ptr<Arena>> ArenaOfPool() {
  return fabric::shm::ArenaFor(geteuid(), PagesOfPool(), LimitOfPool());
}

}  // namespace

std::shared_ptr<uint8_t> AllocateFromPool(size_t bytes) {
  absl::StatusOr<std::shared_ptr<Arena>> arena = ArenaOfPool();
  if (!arena.ok()) return nullptr;
  absl::StatusOr<std::shared_ptr<ArenaLease>> lease = (*arena)->Allocate(bytes);
  if (!lease.ok()) return nullptr;
  uint8_t* const data = (*lease)->data();
  return std::shared_ptr<uint8_t>(*std::move(lease), data);
}

uint64_t RaisePoolLimit(uint64_t bytes) {
  absl::StatusOr<std::shared_ptr<Arena>> arena = ArenaOfPool();
  if (!arena.ok()) return 0;
  if (LimitOfPool() == 0) (*arena)->RaiseBudget(bytes);
  return (*arena)->budget();
}

}  // namespace penstock
