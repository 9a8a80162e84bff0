// Frames and units with each field at its extremes.

#ifndef PENSTOCK_TESTS_ADVERSARY_VARIANTS_H_
#define PENSTOCK_TESTS_ADVERSARY_VARIANTS_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/adversary/wire.h"

namespace penstock::adversary {

// Return all known types, and some unknown ones.
std::vector<uint8_t> FrameTypes();
std::vector<uint8_t> UnitTypes();

// Returns a frame as an honest peer would send it on that stream.
Frame GoodFrame(uint8_t type, uint32_t stream);

// Returns the good frame of that type, and others that differ from it in one
// field. `sequence` is that of the session's next frame.
std::vector<Frame> Variants(uint8_t type, uint32_t stream, uint64_t sequence);

// Returns headers of units, with a body if one must follow.
std::vector<std::string> UnitVariants(uint8_t type);

// Returns any of these frames, with any of its fields changed. Most have the
// right number.
Frame RandomFrame(std::mt19937* random);

// Returns a frame for that stream with numbers of any size: a number of few
// bits is as likely as one of many. Most frames are well-formed. `id` is that
// of the session's next announcement.
Frame FrameOfAnySize(std::mt19937_64* random, uint32_t stream, uint64_t id);

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_VARIANTS_H_
