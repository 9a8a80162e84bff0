// Checksums of tensors' elements. They detect memory and networks that flip
// bits, and senders that write to a tensor while it is being sent.

#ifndef PENSTOCK_TENSOR_SERVICE_CHECKSUM_H_
#define PENSTOCK_TENSOR_SERVICE_CHECKSUM_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace penstock::tensor {

// Returns XXH3-64, by libxxhash, with seed 0. Detects accidents only:
// protection against a malicious peer is TLS's task.
uint64_t ChecksumOf(absl::string_view bytes);

// Returns true if Encode() adds checksums by default. Initially false.
bool SendsChecksums();

// Sets if Encode() adds checksums by default. The sender decides for its
// requests and its answers; a receiver always verifies a checksum that it gets.
// With checksums, both sides read all bytes once more, which over shm takes
// several times as long as the transfer. Thread-safe, but call it once, from
// main(): libraries should leave the choice to the program.
void SendChecksums(bool send);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CHECKSUM_H_
