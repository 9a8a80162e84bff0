// Implements RegisterMemory().

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/statusor.h"
#include "penstock/penstock.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace {

class DeclaredMemory : public RegisteredMemory {
 public:
  explicit DeclaredMemory(std::unique_ptr<memory::StableMemory> promise)
      : promise_(std::move(promise)) {}

 private:
  const std::unique_ptr<memory::StableMemory> promise_;
};

}  // namespace

std::unique_ptr<RegisteredMemory> RegisterMemory(const void* data,
                                                 size_t size) {
  absl::StatusOr<std::unique_ptr<memory::StableMemory>> promise =
      memory::StableMemory::Declare(data, size);
  if (!promise.ok()) return nullptr;
  return absl::make_unique<DeclaredMemory>(*std::move(promise));
}

}  // namespace penstock
