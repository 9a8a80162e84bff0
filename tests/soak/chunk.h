// Payloads that reveal changes.

#ifndef PENSTOCK_TESTS_SOAK_CHUNK_H_
#define PENSTOCK_TESTS_SOAK_CHUNK_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "tests/soak/soak.pb.h"

namespace penstock::soak {

// Returns a sum that depends on each byte and its position.
uint64_t SumOf(const std::string& bytes);

// Fills a chunk with `size` bytes, which depend on the seed, and their sum.
void Fill(size_t size, uint64_t seed, Chunk* chunk);

// Returns true if the chunk's sum is correct.
bool IsIntact(const Chunk& chunk);

}  // namespace penstock::soak

#endif  // PENSTOCK_TESTS_SOAK_CHUNK_H_
