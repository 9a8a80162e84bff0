// Checksums of tensors' elements, against memory and networks that change bits,
// and against senders that write to a tensor while it is being sent.

#ifndef PENSTOCK_TENSOR_SERVICE_CHECKSUM_H_
#define PENSTOCK_TENSOR_SERVICE_CHECKSUM_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace penstock::tensor {

// Returns XXH3-64, by libxxhash, with seed 0. It finds accidents. It is no
// protection against a peer that means harm: that is TLS's.
uint64_t ChecksumOf(absl::string_view bytes);

// Returns whether Encode() adds checksums where its caller does not say. False
// at first.
bool SendsChecksums();

// Chooses that from now on. A receiver checks what it gets without being asked,
// so this is the sender's to choose, for its requests and its answers. Reading
// all bytes once more takes time on both sides, and over shm, where nothing
// else reads them on the way, several times that of sending them. Thread-safe,
// but call it once, from main(): libraries should leave the choice to the
// program.
void SendChecksums(bool send);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CHECKSUM_H_
