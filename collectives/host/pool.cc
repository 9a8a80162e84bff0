#include "collectives/host/pool.h"

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "transport/base/mutex.h"

namespace penstock::collectives {

absl::StatusOr<std::unique_ptr<PoolMemory>> Pool::Allocate(uint64_t bytes) {
  base::MutexLock lock(&mu_);
  const auto offset = ranges_.Allocate(bytes);
  if (!offset.has_value()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no ", bytes, " contiguous bytes are free in the pool of ",
                     bytes_, " bytes"));
  }
  return std::make_unique<PoolMemory>(shared_from_this(), *offset, bytes);
}

void Pool::Free(uint64_t offset, uint64_t bytes) {
  base::MutexLock lock(&mu_);
  ranges_.Free(offset, bytes);
}

}  // namespace penstock::collectives
