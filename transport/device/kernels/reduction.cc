#include "transport/device/kernels/reduction.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "transport/device/kernels/arguments.h"

namespace penstock::device::kernels {
namespace {

uint64_t AddressOf(const void* array) {
  return reinterpret_cast<uintptr_t>(array);
}

absl::Status Wrong(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("reduction: ", what));
}

absl::Status CheckFanIn(const Reduction& reduction) {
  const size_t fan_in = reduction.inputs.size();
  if (reduction.operation == Operation::kScaledAdd) {
    if (fan_in == 1) return absl::OkStatus();
    return Wrong(absl::StrCat("a scaled add has one input, not ", fan_in));
  }
  if (fan_in == 0) return Wrong("there are no inputs");
  if (fan_in <= kMaxFanIn) return absl::OkStatus();
  return Wrong(
      absl::StrCat(fan_in, " inputs; at most ", kMaxFanIn,
                   " are reduced in one step: reduce in several steps"));
}

absl::Status CheckArray(const std::string& name, const void* array,
                        uint64_t bytes, size_t element) {
  if (array == nullptr) return Wrong(absl::StrCat(name, " is null"));
  const uint64_t address = AddressOf(array);
  if (address % element != 0) {
    return Wrong(absl::StrCat(name, " at 0x", absl::Hex(address),
                              " is not aligned to its elements of ", element,
                              " bytes"));
  }
  if (bytes - 1 > std::numeric_limits<uint64_t>::max() - address) {
    return Wrong(absl::StrCat(name, " of ", bytes, " bytes at 0x",
                              absl::Hex(address),
                              " ends after the last address"));
  }
  return absl::OkStatus();
}

// Returns true if two arrays overlap at different offsets. An element of the
// input would then be read before or after another thread overwrites it,
// because threads run in any order.
bool OverlapAskew(const void* input, const void* output, uint64_t bytes) {
  const uint64_t a = AddressOf(input), b = AddressOf(output);
  return a != b && (a < b ? b - a : a - b) < bytes;
}

}  // namespace

size_t ElementBytes(ElementType type) {
  return type == ElementType::kF32 ? 4 : 2;
}

float ScaleOf(const Reduction& reduction) {
  if (reduction.operation != Operation::kMean) return reduction.scale;
  return 1.0f / static_cast<float>(reduction.inputs.size());
}

absl::Status Check(const Reduction& reduction) {
  if (absl::Status status = CheckFanIn(reduction); !status.ok()) return status;
  if (reduction.count == 0) return absl::OkStatus();
  const size_t element = ElementBytes(reduction.type);
  if (reduction.count > std::numeric_limits<uint64_t>::max() / element) {
    return Wrong(absl::StrCat(reduction.count, " elements are too many"));
  }
  const uint64_t bytes = reduction.count * element;
  absl::Status status =
      CheckArray("the output", reduction.output, bytes, element);
  for (size_t i = 0; status.ok() && i < reduction.inputs.size(); ++i) {
    const std::string name = absl::StrCat("input ", i);
    status = CheckArray(name, reduction.inputs[i], bytes, element);
    if (status.ok() &&
        OverlapAskew(reduction.inputs[i], reduction.output, bytes)) {
      return Wrong(absl::StrCat(name, " overlaps the output"));
    }
  }
  return status;
}

}  // namespace penstock::device::kernels
