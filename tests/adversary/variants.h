// Frames and units with extreme values in each field.

#ifndef PENSTOCK_TESTS_ADVERSARY_VARIANTS_H_
#define PENSTOCK_TESTS_ADVERSARY_VARIANTS_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/adversary/wire.h"

namespace penstock::adversary {

// Return all known types, and some unknown types.
std::vector<uint8_t> FrameTypes();
std::vector<uint8_t> UnitTypes();

// Returns a frame like an honest peer's, on this stream.
Frame GoodFrame(uint8_t type, uint32_t stream);

// Returns the good frame of this type, and variants that differ from it in one
// field. `sequence` is the number of the session's next frame.
std::vector<Frame> Variants(uint8_t type, uint32_t stream, uint64_t sequence);

// Returns unit headers, with a body if the type requires one.
std::vector<std::string> UnitVariants(uint8_t type);

// Returns a random frame of these types, with random changes to its fields.
// Most frames have the right sequence number.
Frame RandomFrame(std::mt19937* random);

// Returns a frame for the stream with log-uniform numbers: small numbers are as
// likely as large ones. Most frames are well-formed. `id` is the id of the
// session's next announcement.
Frame FrameOfAnySize(std::mt19937_64* random, uint32_t stream, uint64_t id);

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_VARIANTS_H_
