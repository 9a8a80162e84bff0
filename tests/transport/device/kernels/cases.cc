#include "tests/transport/device/kernels/cases.h"

#include <cmath>
#include <cstring>

#include "tests/transport/device/kernels/reference.h"
#include "transport/device/kernels/arguments.h"
#include "transport/device/kernels/launch_plan.h"

namespace penstock::device::kernels {
namespace {

// Returns a random number of elements. The upper bound is a few vectors, a
// little more than a block's threads, or several of the host's pieces.
uint64_t DrawCount(Random* random) {
  const uint64_t most[] = {20, 300, 5000};
  return Draw(random, 0, most[Draw(random, 0, 2)]);
}

uint32_t RoundedBits(ElementType type, float value) {
  if (type == ElementType::kF16) return NearestHalf(value);
  if (type == ElementType::kBf16) return NearestBfloat16(value);
  if (std::isnan(value)) return 0x7fc00000;
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

std::vector<uint32_t> BitsOf(const Array& array, uint64_t count) {
  std::vector<uint32_t> bits(count);
  for (uint64_t i = 0; i < count; ++i) bits[i] = array.BitsAt(i);
  return bits;
}

}  // namespace

Case::Case(Random* random) {
  reduction_.operation = static_cast<Operation>(Draw(random, 0, 2));
  reduction_.type = static_cast<ElementType>(Draw(random, 0, 2));
  reduction_.count = DrawCount(random);
  reduction_.scale = std::uniform_real_distribution<float>(-3, 3)(*random);
  const bool is_add = reduction_.operation == Operation::kScaledAdd;
  const uint64_t fan_in = is_add ? 1 : Draw(random, 1, kMaxFanIn);
  const bool alike = Draw(random, 0, 3) != 0;
  const uint64_t offset = Draw(random, 0, 8);
  for (uint64_t i = 0; i <= fan_in; ++i) {
    arrays_.emplace_back(reduction_.type, reduction_.count,
                         alike ? offset : Draw(random, 0, 8));
    arrays_.back().FillWithAnything(random);
  }
  output_ = Draw(random, 0, 2) == 0 ? Draw(random, 0, fan_in) : fan_in;
  for (uint64_t i = 0; i < fan_in; ++i) inputs_.push_back(arrays_[i].data());
  for (const Array& array : arrays_) {
    before_.push_back(BitsOf(array, reduction_.count));
  }
  reduction_.inputs = inputs_;
  reduction_.output = arrays_[output_].data();
}

uint32_t Case::ExpectedAt(uint64_t index) const {
  float value = arrays_[0].At(index);
  if (reduction_.operation == Operation::kScaledAdd) {
    value = Sum(arrays_[output_].At(index), Product(reduction_.scale, value));
  }
  const size_t fan_in = inputs_.size();
  for (size_t i = 1; i < fan_in; ++i) value = Sum(value, arrays_[i].At(index));
  if (reduction_.operation == Operation::kMean) {
    value = Product(value, static_cast<float>(1.0 / fan_in));
  }
  return RoundedBits(reduction_.type, value);
}

std::vector<uint32_t> Case::Expected() const {
  std::vector<uint32_t> bits(reduction_.count);
  for (uint64_t i = 0; i < reduction_.count; ++i) bits[i] = ExpectedAt(i);
  return bits;
}

std::vector<uint32_t> Case::Output() const {
  return BitsOf(arrays_[output_], reduction_.count);
}

bool Case::NothingElseWasWritten() const {
  for (size_t i = 0; i < arrays_.size(); ++i) {
    if (!arrays_[i].GuardsStand()) return false;
    if (i != output_ && BitsOf(arrays_[i], reduction_.count) != before_[i]) {
      return false;
    }
  }
  return true;
}

std::ostream& operator<<(std::ostream& out, const Case& one) {
  const Reduction& reduction = one.reduction();
  out << KernelName(reduction.operation, reduction.type) << " of "
      << reduction.count << " elements at " << reduction.output << ", from";
  for (const void* input : reduction.inputs) out << ' ' << input;
  return out << ", scale " << reduction.scale;
}

}  // namespace penstock::device::kernels
