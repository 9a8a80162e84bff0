// Arrays of elements at any alignment, with numbers by chance.

#ifndef PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_ARRAYS_H_
#define PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_ARRAYS_H_

#include <cstdint>
#include <random>
#include <vector>

#include "transport/device/kernels/reduction.h"

namespace penstock::device::kernels {

using Random = std::mt19937_64;

// Returns a number from `low` to `high`.
uint64_t Draw(Random* random, uint64_t low, uint64_t high);

// `count` elements, `offset` elements behind a multiple of 64 bytes, between
// guards.
class Array {
 public:
  Array(ElementType type, uint64_t count, uint64_t offset);

  void* data();
  const void* data() const;

  // Of an element, in the low bits.
  uint32_t BitsAt(uint64_t index) const;
  void SetBits(uint64_t index, uint32_t bits);
  // Exact.
  float At(uint64_t index) const;

  // Elements of any bits: numbers of all sizes, subnormal ones, infinities and
  // NaNs; every fourth is one of a few that lie close together, so that sums
  // cancel, tie and overflow.
  void FillWithAnything(Random* random);
  // Numbers between -1 and 1.
  void FillWithFractions(Random* random);

  // Whether the bytes around the elements are as they were.
  bool GuardsStand() const;

 private:
  ElementType type_;
  uint64_t count_;
  size_t first_;  // byte
  std::vector<uint8_t> bytes_;
};

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_ARRAYS_H_
