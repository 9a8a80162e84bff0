#include "tensor_service/codec/names.h"

#include "tensor_service/codec/slice_reader.h"
#include "tensor_service/codec/wire.h"

namespace penstock::tensor {

absl::StatusOr<NamesSize> CountNames(const grpc::ByteBuffer& request) {
  absl::StatusOr<SliceReader> in = SliceReader::Over(request);
  if (!in.ok()) return in.status();
  constexpr uint32_t kNamesField = 1;
  NamesSize size;
  while (in->position() < in->size()) {
    uint32_t field;
    uint32_t wire_type;
    const bool is_good = in->ReadTag(in->size(), &field, &wire_type);
    const size_t before = in->position();
    if (!is_good || !in->SkipValue(in->size(), field, wire_type)) {
      return absl::InvalidArgumentError("read message: not a list of names");
    }
    if (field != kNamesField || wire_type != kLengthDelimited) continue;
    ++size.names;
    size.bytes += in->position() - before;
  }
  return size;
}

}  // namespace penstock::tensor
