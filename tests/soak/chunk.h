// Payloads that show whether they have been changed.

#ifndef PENSTOCK_TESTS_SOAK_CHUNK_H_
#define PENSTOCK_TESTS_SOAK_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/soak/soak.pb.h"

namespace penstock::soak {

// Differs where a byte, or the place of one, differs.
uint64_t SumOf(const std::string& bytes);

// `size` bytes, others for each seed, with their sum.
void Fill(size_t size, uint64_t seed, Chunk* chunk);

// It has the sum that it says.
bool IsIntact(const Chunk& chunk);

}  // namespace penstock::soak

#endif  // PENSTOCK_TESTS_SOAK_CHUNK_H_
