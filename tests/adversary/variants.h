// Frames and units with each field at its extremes.

#ifndef PENSTOCK_TESTS_ADVERSARY_VARIANTS_H_
#define PENSTOCK_TESTS_ADVERSARY_VARIANTS_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/adversary/wire.h"

namespace penstock::adversary {

// All known types, and some that nobody knows.
std::vector<uint8_t> FrameTypes();
std::vector<uint8_t> UnitTypes();

// As an honest peer would send it on that stream.
Frame GoodFrame(uint8_t type, uint32_t stream);

// The good frame of that type, and others that differ from it in one field.
// `sequence` is that of the session's next frame.
std::vector<Frame> Variants(uint8_t type, uint32_t stream, uint64_t sequence);

// Headers of units, with a body where one is to follow.
std::vector<std::string> UnitVariants(uint8_t type);

// Any of these frames, with any of their fields changed; most numbered right.
Frame RandomFrame(std::mt19937* random);

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_VARIANTS_H_
