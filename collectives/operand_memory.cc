#include "collectives/operand_memory.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "collectives/reduction/reduction.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {
namespace {

class Host final : public OperandMemory {
 public:
  absl::StatusOr<bool> Has(const void*) const override { return true; }

  absl::Status CopyToHost(const void* from, void* to, size_t bytes) override {
    return Copy(from, to, bytes);
  }
  absl::Status CopyFromHost(const void* from, void* to, size_t bytes) override {
    return Copy(from, to, bytes);
  }
  absl::Status Copy(const void* from, void* to, size_t bytes) override {
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  absl::Status Reduce(ReduceOp op, tensor::DType dtype, const void* received,
                      bool is_right, void* data, size_t count) override {
    const void* operands[2] = {received, data};
    if (is_right) std::swap(operands[0], operands[1]);
    collectives::Reduce(op, dtype, operands, data, count);
    return absl::OkStatus();
  }
  absl::Status Divide(tensor::DType dtype, void* data, int by,
                      size_t count) override {
    collectives::Divide(dtype, data, by, count);
    return absl::OkStatus();
  }
};

}  // namespace

OperandMemory* HostMemory() {
  static auto* const host = new Host;
  return host;
}

absl::StatusOr<OperandMemory*> MemoryOf(
    absl::Span<OperandMemory* const> memories, const void* address) {
  absl::Status error;
  for (OperandMemory* const memory : memories) {
    const absl::StatusOr<bool> has = memory->Has(address);
    if (has.ok() && *has) return memory;
    error.Update(has.status());
  }
  if (!error.ok()) return error;
  return HostMemory();
}

}  // namespace penstock::collectives
