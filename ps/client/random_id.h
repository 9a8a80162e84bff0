// Draws unique numbers.

#ifndef PENSTOCK_PS_CLIENT_RANDOM_ID_H_
#define PENSTOCK_PS_CLIENT_RANDOM_ID_H_

#include <cstdint>
#include <random>

namespace penstock::ps {

// Returns a nonzero random number from the operating system.
inline uint64_t RandomId() {
  std::random_device device;
  uint64_t id = 0;
  while (id == 0) id = static_cast<uint64_t>(device()) << 32 | device();
  return id;
}

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_RANDOM_ID_H_
