#include "tensor_service/exchange/named_answer.h"

#include "tensor_service/checksum.h"

namespace penstock::tensor {

size_t CopiedBytes(const Bundle& bundle) {
  size_t bytes = 0;
  for (const NamedTensor& named : bundle.tensors) {
    const size_t size = named.tensor.byte_size();
    const bool is_copied = named.tensor.device().is_host()
                               ? size < kCopyBelowBytes
                               : size < kLendAtLeast || SendsChecksums();
    if (is_copied) bytes += size;
  }
  return bytes;
}

}  // namespace penstock::tensor
