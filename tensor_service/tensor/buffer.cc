#include "tensor_service/buffer.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensor_service/device_stream.h"
#include "transport/progress/fork_count.h"

namespace penstock::tensor {
namespace {

void ReleaseHolder(void* holder) {
  delete static_cast<std::shared_ptr<Buffer>*>(holder);
}

// Returns true if the slice is so short that it keeps its bytes inside its
// handle, at an unaligned address.
bool IsInHandle(const grpc::Slice& slice) {
  const auto handle = reinterpret_cast<uintptr_t>(&slice);
  const auto bytes = reinterpret_cast<uintptr_t>(slice.begin());
  return bytes >= handle && bytes - handle < sizeof(slice);
}

// The bytes of such a short slice, at an aligned address.
struct InHandle {
  alignas(8) char bytes[sizeof(grpc::Slice)];
};

}  // namespace

class Buffer::Key {};

Buffer::Buffer() : fork_count_(progress::ForkCount()) {}

bool Buffer::IsInherited() const {
  return fork_count_ != progress::ForkCount();
}

absl::StatusOr<std::shared_ptr<Buffer>> Buffer::Allocate(size_t size) {
  // Allocates at least one byte, to keep data() valid. posix_memalign may
  // return null for 0 bytes.
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, size == 0 ? 1 : size) != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("allocate tensor of ", size, " bytes: out of memory"));
  }
  return Wrap(memory, size, /*writable=*/true, [memory] { free(memory); });
}

std::shared_ptr<Buffer> Buffer::FromSlice(grpc::Slice slice, size_t held) {
  if (IsInHandle(slice)) {
    auto copy = std::make_shared<InHandle>();
    memcpy(copy->bytes, slice.begin(), slice.size());
    return Share(copy->bytes, slice.size(), copy);
  }
  auto owner = std::make_shared<grpc::Slice>(std::move(slice));
  return Share(owner->begin(), owner->size(), owner, held);
}

std::shared_ptr<Buffer> Buffer::Share(const void* data, size_t size,
                                      std::shared_ptr<const void> owner,
                                      size_t held) {
  auto buffer = std::make_shared<Buffer>(Key());
  buffer->data_ = static_cast<char*>(const_cast<void*>(data));
  buffer->size_ = size;
  buffer->held_ = std::max(size, held);
  buffer->owner_ = std::move(owner);
  return buffer;
}

std::shared_ptr<Buffer> Buffer::Wrap(void* data, size_t size, bool writable,
                                     std::function<void()> release) {
  auto buffer = std::make_shared<Buffer>(Key());
  buffer->data_ = static_cast<char*>(data);
  buffer->size_ = size;
  buffer->held_ = size;
  buffer->writable_ = writable;
  buffer->release_ = std::move(release);
  return buffer;
}

std::shared_ptr<Buffer> Buffer::WrapDevice(
    const Device& device, uintptr_t address, size_t size, bool writable,
    std::function<void()> release, std::shared_ptr<const DeviceEvent> ready) {
  auto buffer = Wrap(nullptr, size, writable, std::move(release));
  buffer->at_.reset(new Place{device, address, std::move(ready)});
  return buffer;
}

std::shared_ptr<Buffer> Buffer::PartOf(std::shared_ptr<Buffer> whole,
                                       size_t offset, size_t size) {
  Buffer& from = *whole;
  if (from.at_ == nullptr) {
    return Share(from.data_ + offset, size, std::move(whole), from.held_);
  }
  auto part = Share(nullptr, size, std::move(whole), from.held_);
  part->at_.reset(
      new Place{from.at_->device, from.at_->address + offset, from.at_->ready});
  return part;
}

std::shared_ptr<Buffer> Buffer::After(
    std::shared_ptr<Buffer> buffer, std::shared_ptr<const DeviceEvent> ready) {
  if (buffer->at_ == nullptr) return buffer;
  const size_t size = buffer->size_;
  const bool writable = buffer->writable_;
  auto later = PartOf(std::move(buffer), 0, size);
  later->writable_ = writable;
  later->at_.reset(
      new Place{later->at_->device, later->at_->address, std::move(ready)});
  return later;
}

std::shared_ptr<Buffer> Buffer::With(std::shared_ptr<Buffer> buffer,
                                     std::shared_ptr<const void> companion) {
  // A buffer and its companion, for example the reservation that counts its
  // memory. Members are destroyed in reverse order: the buffer first.
  struct Both {
    std::shared_ptr<const void> companion;
    std::shared_ptr<Buffer> buffer;
  };
  const Buffer& from = *buffer;
  auto both = std::make_shared<Both>();
  both->companion = std::move(companion);
  both->buffer = std::move(buffer);
  auto held = Share(from.data_, from.size_, std::move(both), from.held_);
  if (from.at_ != nullptr) held->at_.reset(new Place(*from.at_));
  return held;
}

// A block of buffers that are freed together. One used buffer keeps the whole
// block and its owner alive, so a block is small: about a kilobyte.
struct BufferParts::Block {
  static constexpr size_t kParts = 16;
  std::shared_ptr<const void> owner;
  Buffer parts[kParts];
};

std::shared_ptr<Buffer> BufferParts::Share(const void* data, size_t size) {
  const size_t place = made_++ % Block::kParts;
  if (made_ <= Block::kParts) return Buffer::Share(data, size, owner_, held_);
  if (place == 0) {
    block_ = std::make_shared<Block>();
    block_->owner = owner_;
  }
  Buffer& part = block_->parts[place];
  part.data_ = static_cast<char*>(const_cast<void*>(data));
  part.size_ = size;
  part.held_ = std::max(size, held_) + sizeof(Block);
  return std::shared_ptr<Buffer>(block_, &part);
}

Buffer::~Buffer() {
  if (release_) release_();
}

grpc::Slice SliceOf(std::shared_ptr<Buffer> buffer) {
  char* data = buffer->mutable_data();
  size_t size = buffer->device().is_host() ? buffer->size() : 0;
  auto* holder = new std::shared_ptr<Buffer>(std::move(buffer));
  return grpc::Slice(data, size, &ReleaseHolder, holder);
}

}  // namespace penstock::tensor
