// Arrays with any alignment, and random elements.

#ifndef PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_ARRAYS_H_
#define PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_ARRAYS_H_

#include <cstdint>
#include <random>
#include <vector>

#include "transport/device/kernels/reduction.h"

namespace penstock::device::kernels {

using Random = std::mt19937_64;

// Returns a random number between `low` and `high`, inclusive.
uint64_t Draw(Random* random, uint64_t low, uint64_t high);

// An array of `count` elements between guard bytes. The first element is
// `offset` elements after a multiple of 64 bytes.
class Array {
 public:
  Array(ElementType type, uint64_t count, uint64_t offset);

  void* data();
  const void* data() const;

  // Returns an element's bits, in the low bits.
  uint32_t BitsAt(uint64_t index) const;
  void SetBits(uint64_t index, uint32_t bits);
  // Returns the exact value.
  float At(uint64_t index) const;

  // Fills the array with random bits: numbers of all magnitudes, subnormal
  // numbers, infinities and NaNs. Draws a quarter of the elements from a few
  // close values, so that sums cancel, tie and overflow.
  void FillWithAnything(Random* random);
  // Fills the array with numbers between -1 and 1.
  void FillWithFractions(Random* random);

  // Returns true if the bytes around the elements are unchanged.
  bool GuardsStand() const;

 private:
  ElementType type_;
  uint64_t count_;
  size_t first_;  // byte
  std::vector<uint8_t> bytes_;
};

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_ARRAYS_H_
