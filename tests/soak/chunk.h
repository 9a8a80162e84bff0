// Payloads that show whether they have been changed.

#ifndef PENSTOCK_TESTS_SOAK_CHUNK_H_
#define PENSTOCK_TESTS_SOAK_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/soak/soak.pb.h"

namespace penstock::soak {

// Returns a sum that changes if a byte, or its place, changes.
uint64_t SumOf(const std::string& bytes);

// Fills a chunk with `size` bytes, which depend on the seed, and their sum.
void Fill(size_t size, uint64_t seed, Chunk* chunk);

// Returns whether the chunk's bytes have the sum that it states.
bool IsIntact(const Chunk& chunk);

}  // namespace penstock::soak

#endif  // PENSTOCK_TESTS_SOAK_CHUNK_H_
