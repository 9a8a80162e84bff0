#include "tensor_service/checksum.h"

#include <xxh_x86dispatch.h>

#include <atomic>

namespace penstock::tensor {
namespace {

std::atomic<bool> sends_checksums{false};

}  // namespace

uint64_t ChecksumOf(absl::string_view bytes) {
  return XXH3_64bits_dispatch(bytes.data(), bytes.size());
}

bool SendsChecksums() {
  return sends_checksums.load(std::memory_order_relaxed);
}

void SendChecksums(bool send) {
  sends_checksums.store(send, std::memory_order_relaxed);
}

}  // namespace penstock::tensor
