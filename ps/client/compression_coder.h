// Compresses what a worker pushes; for Worker::Options::coder.

#ifndef PENSTOCK_PS_CLIENT_COMPRESSION_CODER_H_
#define PENSTOCK_PS_CLIENT_COMPRESSION_CODER_H_

#include <memory>
#include <string>

#include "ps/client/gradients.h"
#include "ps/compression/compressor.h"

namespace penstock::ps {

// Returns a coder for one part of a table. Gradients that did not count come
// again with later ones, where the kind has error feedback. Encode() returns
// errors as compression::Compressor does, those of the spec at its first call.
//
//   options.coder = [](const std::string& table, const PlacedPart&) {
//     return table == "kernel" ? MakeCompressionCoder(table, kTopK) : nullptr;
//   };
std::unique_ptr<GradientCoder> MakeCompressionCoder(
    const std::string& table, const compression::CompressionSpec& spec);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_COMPRESSION_CODER_H_
