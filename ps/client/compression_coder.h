// Compresses a worker's pushes, as a coder for Worker::Options::coder.

#ifndef PENSTOCK_PS_CLIENT_COMPRESSION_CODER_H_
#define PENSTOCK_PS_CLIENT_COMPRESSION_CODER_H_

#include <memory>
#include <string>

#include "ps/client/gradients.h"
#include "ps/compression/compressor.h"

namespace penstock::ps {

// Returns a coder for one part of a table. With error feedback, adds gradients
// that did not count to later gradients. Encode() returns the errors of
// compression::Compressor. The first call returns errors of the spec.
//
//   options.coder = [](const std::string& table, const PlacedPart&) {
//     return table == "kernel" ? MakeCompressionCoder(table, kTopK) : nullptr;
//   };
std::unique_ptr<GradientCoder> MakeCompressionCoder(
    const std::string& table, const compression::CompressionSpec& spec);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_COMPRESSION_CODER_H_
