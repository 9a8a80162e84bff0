#include "tests/transport/device/kernels/arrays.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "tests/transport/device/kernels/reference.h"

namespace penstock::device::kernels {
namespace {

constexpr size_t kGuard = 64;
constexpr uint8_t kGuardByte = 0xa5;

// Numbers of 16 bits, which are also used as the upper half of a float. They
// include limits, ties and small integers.
constexpr uint16_t kClose[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x03ff, 0x0400,
                               0x3c00, 0x3c01, 0xbc00, 0x3f80, 0xbf80, 0x3f81,
                               0x7bff, 0xfbff, 0x7c00, 0x7f7f, 0xff7f, 0x7f80};

}  // namespace

uint64_t Draw(Random* random, uint64_t low, uint64_t high) {
  return std::uniform_int_distribution<uint64_t>(low, high)(*random);
}

Array::Array(ElementType type, uint64_t count, uint64_t offset)
    : type_(type),
      count_(count),
      bytes_(3 * kGuard + (count + offset) * ElementBytes(type), kGuardByte) {
  const uintptr_t start = reinterpret_cast<uintptr_t>(bytes_.data()) + kGuard;
  first_ =
      kGuard + (kGuard - start % kGuard) % kGuard + offset * ElementBytes(type);
}

void* Array::data() { return bytes_.data() + first_; }
const void* Array::data() const { return bytes_.data() + first_; }

uint32_t Array::BitsAt(uint64_t index) const {
  uint32_t bits = 0;
  const size_t size = ElementBytes(type_);
  memcpy(&bits, bytes_.data() + first_ + index * size, size);
  return bits;
}

void Array::SetBits(uint64_t index, uint32_t bits) {
  const size_t size = ElementBytes(type_);
  memcpy(bytes_.data() + first_ + index * size, &bits, size);
}

float Array::At(uint64_t index) const {
  const uint32_t bits = BitsAt(index);
  switch (type_) {
    case ElementType::kF16:
      return ValueOfHalf(static_cast<uint16_t>(bits));
    case ElementType::kBf16:
      return ValueOfBfloat16(static_cast<uint16_t>(bits));
    case ElementType::kF32:
      break;
  }
  float value;
  memcpy(&value, &bits, sizeof(value));
  return value;
}

void Array::FillWithAnything(Random* random) {
  for (uint64_t i = 0; i < count_; ++i) {
    uint32_t bits = static_cast<uint32_t>((*random)());
    if (Draw(random, 0, 3) == 0) {
      bits = kClose[Draw(random, 0, std::size(kClose) - 1)];
      if (type_ == ElementType::kF32) bits <<= 16;
    }
    SetBits(i, bits);
  }
}

void Array::FillWithFractions(Random* random) {
  std::uniform_real_distribution<float> fraction(-1, 1);
  for (uint64_t i = 0; i < count_; ++i) {
    const float value = fraction(*random);
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    if (type_ == ElementType::kF16) bits = NearestHalf(value);
    if (type_ == ElementType::kBf16) bits = NearestBfloat16(value);
    SetBits(i, bits);
  }
}

bool Array::GuardsStand() const {
  const auto is_guard = [](uint8_t byte) { return byte == kGuardByte; };
  const auto first = bytes_.begin() + static_cast<ptrdiff_t>(first_);
  return std::all_of(bytes_.begin(), first, is_guard) &&
         std::all_of(
             first + static_cast<ptrdiff_t>(count_ * ElementBytes(type_)),
             bytes_.end(), is_guard);
}

}  // namespace penstock::device::kernels
