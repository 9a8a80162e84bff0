#include "transport/event_engine/slices.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "grpc/slice.h"

namespace penstock {
namespace event_engine {
namespace {

using grpc_event_engine::experimental::Slice;
using grpc_event_engine::experimental::SliceBuffer;

// The size up to which a copy costs less than sharing the slice, in bytes.
constexpr size_t kCopiedBytes = 1024;

void DropOwner(void* owner) {
  delete static_cast<std::shared_ptr<const void>*>(owner);
}

grpc_slice SliceOf(const memory::Bytes& bytes) {
  if (bytes.size <= kCopiedBytes) {
    return grpc_slice_from_copied_buffer(
        reinterpret_cast<const char*>(bytes.data), bytes.size);
  }
  return grpc_slice_new_with_user_data(
      const_cast<uint8_t*>(bytes.data), bytes.size, &DropOwner,
      new std::shared_ptr<const void>(bytes.owner));
}

memory::Bytes BytesOf(Slice slice) {
  auto owner = std::make_shared<Slice>(std::move(slice));
  // Reads the address after the move, because a short slice contains its bytes.
  const uint8_t* const data = owner->data();
  const size_t size = owner->size();
  return memory::Bytes{data, size, std::move(owner)};
}

}  // namespace

memory::Payload TakePayload(SliceBuffer* slices) {
  memory::Payload payload;
  const size_t size = slices->Length();
  if (size <= kCopiedBytes && slices->Count() > 1) {
    absl::StatusOr<memory::Block> block = memory::AllocateBlock(size);
    if (block.ok()) {
      uint8_t* end = block->data.get();
      for (size_t i = 0; i < slices->Count(); ++i) {
        const Slice slice = slices->RefSlice(i);
        end = std::copy_n(slice.data(), slice.size(), end);
      }
      payload.Append(block->AsBytes());
      return payload;
    }
  }
  while (slices->Count() > 0) payload.Append(BytesOf(slices->TakeFirst()));
  return payload;
}

void AppendPayload(const memory::Payload& payload, SliceBuffer* slices) {
  for (const memory::Bytes& piece : payload.pieces()) {
    slices->Append(Slice(SliceOf(piece)));
  }
}

}  // namespace event_engine
}  // namespace penstock
