// A checksum by which two processes compare bytes.

#ifndef PENSTOCK_TESTS_TRANSPORT_DEVICE_SUM_OF_H_
#define PENSTOCK_TESTS_TRANSPORT_DEVICE_SUM_OF_H_

#include <cstdint>
#include <string>

namespace penstock {
namespace device {

// Returns the FNV-1a hash of the bytes. The hash depends on each byte and its
// position.
inline uint64_t SumOf(const std::string& bytes) {
  uint64_t sum = 14695981039346656037u;
  for (const char byte : bytes) {
    sum = (sum ^ static_cast<uint8_t>(byte)) * 1099511628211u;
  }
  return sum;
}

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_DEVICE_SUM_OF_H_
