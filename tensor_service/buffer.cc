#include "tensor_service/buffer.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock::tensor {
namespace {

void ReleaseHolder(void* holder) {
  delete static_cast<std::shared_ptr<Buffer>*>(holder);
}

// Whether the slice is short and keeps its bytes inside its handle, at an odd
// place.
bool IsInHandle(const grpc::Slice& slice) {
  const auto handle = reinterpret_cast<uintptr_t>(&slice);
  const auto bytes = reinterpret_cast<uintptr_t>(slice.begin());
  return bytes >= handle && bytes - handle < sizeof(slice);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Buffer>> Buffer::Allocate(size_t size) {
  // posix_memalign of 0 bytes may give null. One byte keeps data() valid.
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, size == 0 ? 1 : size) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("allocate tensor of ", size, " bytes: out of memory"));
  }
  return Wrap(memory, size, /*writable=*/true, [memory] { free(memory); });
}

std::shared_ptr<Buffer> Buffer::FromSlice(grpc::Slice slice, size_t held) {
  std::shared_ptr<Buffer> buffer(new Buffer);
  buffer->size_ = slice.size();
  if (IsInHandle(slice)) {
    memcpy(buffer->short_, slice.begin(), slice.size());
    buffer->data_ = buffer->short_;
    buffer->held_ = buffer->size_;
    return buffer;
  }
  buffer->slice_ = std::move(slice);
  buffer->data_ =
      reinterpret_cast<char*>(const_cast<uint8_t*>(buffer->slice_.begin()));
  buffer->held_ = std::max(buffer->size_, held);
  return buffer;
}

std::shared_ptr<Buffer> Buffer::Wrap(void* data, size_t size, bool writable,
                                     std::function<void()> release) {
  std::shared_ptr<Buffer> buffer(new Buffer);
  buffer->data_ = static_cast<char*>(data);
  buffer->size_ = size;
  buffer->held_ = size;
  buffer->writable_ = writable;
  buffer->release_ = std::move(release);
  return buffer;
}

Buffer::~Buffer() {
  if (release_) release_();
}

grpc::Slice SliceOf(std::shared_ptr<Buffer> buffer) {
  char* data = buffer->mutable_data();
  size_t size = buffer->size();
  auto* holder = new std::shared_ptr<Buffer>(std::move(buffer));
  return grpc::Slice(data, size, &ReleaseHolder, holder);
}

}  // namespace penstock::tensor
