#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "tensor_service/codec.h"
#include "tensor_service/codec/device_copies.h"
#include "tensor_service/codec/landed.h"
#include "tensor_service/codec/plain_tensor.h"
#include "tensor_service/codec/slice_reader.h"
#include "tensor_service/codec/wire.h"
#include "tensor_service/destination.h"
#include "tensor_service/text.h"

namespace penstock::tensor {
namespace {

// The parts of a NamedTensor that have been read so far. As protobuf allows,
// parts may come in any order and repeatedly: later scalars replace earlier
// ones, and shapes are appended.
struct Draft {
  std::string name;
  int64_t dtype = 0;
  Shape shape;
  std::shared_ptr<Buffer> data;
  absl::optional<uint64_t> checksum;
  DestinationSet* destinations = nullptr;  // the destinations of the message
  Landed* landed = nullptr;        // the message's slices in destinations
  DeviceCopies* copies = nullptr;  // copies from and to devices
  // The destination that contains `data`. Null if `data` is in the message or
  // is a copy.
  Destination* placed = nullptr;
  bool is_landed = false;  // true if received in place
};

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("decode bundle: malformed ", what));
}

absl::Status AppendDimension(SliceReader* in, size_t end, Draft* draft) {
  uint64_t dimension;
  if (!in->ReadVarint(end, &dimension)) return Malformed("shape");
  if (draft->shape.size() == kMaxRank) {
    return absl::InvalidArgumentError(
        absl::StrCat("decode bundle: tensor ", Quoted(draft->name),
                     " has more than ", kMaxRank, " dimensions"));
  }
  draft->shape.push_back(static_cast<int64_t>(dimension));
  return absl::OkStatus();
}

absl::Status ReadShape(SliceReader* in, size_t end, Draft* draft) {
  size_t shape_end;
  if (!in->ReadLength(end, &shape_end)) return Malformed("shape");
  while (in->position() < shape_end) {
    absl::Status status = AppendDimension(in, shape_end, draft);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadDType(SliceReader* in, size_t end, Draft* draft) {
  uint64_t number;
  if (!in->ReadVarint(end, &number)) return Malformed("dtype");
  // Keeps only the low 32 bits, like generated code for an enum.
  draft->dtype = static_cast<int32_t>(number);
  return absl::OkStatus();
}

// Returns the destination on the host of a draft whose data has `size` bytes,
// or null. Also returns null if name, type or shape follow the data, as
// Protobuf allows. Finish() places these tensors, and tensors that are on a
// device or have a destination on a device.
Destination* FindDestination(const Draft& draft, size_t size) {
  if (draft.destinations->empty() || !IsDType(draft.dtype)) return nullptr;
  Destination* const found = draft.destinations->Find(
      draft.name, static_cast<DType>(draft.dtype), draft.shape);
  return found != nullptr && found->into.byte_size() == size && size > 0 &&
                 found->into.device().is_host()
             ? found
             : nullptr;
}

// Returns a copy if `data` is in the destination of another tensor, and
// otherwise `data` itself.
absl::StatusOr<std::shared_ptr<Buffer>> OffDestinations(
    const Draft& draft, std::shared_ptr<Buffer> data) {
  if (data->size() == 0 || !data->device().is_host() ||
      !draft.landed->Contains(data->data())) {
    return data;
  }
  absl::StatusOr<std::shared_ptr<Buffer>> copy = Buffer::Allocate(data->size());
  if (copy.ok()) memcpy((*copy)->mutable_data(), data->data(), data->size());
  return copy;
}

absl::Status ReadData(SliceReader* in, size_t end, Draft* draft) {
  size_t data_end;
  if (!in->ReadLength(end, &data_end)) return Malformed("data");
  draft->placed = in->IsOnHost(data_end)
                      ? FindDestination(*draft, data_end - in->position())
                      : nullptr;
  if (draft->placed != nullptr) {
    draft->data = draft->placed->into.buffer();
    char* const place = draft->data->mutable_data();
    draft->is_landed = in->SkipIfAt(data_end, place);
    if (draft->is_landed) return absl::OkStatus();
    absl::Status status = draft->landed->MoveAway(*draft->placed);
    if (status.ok() && !in->CopyTo(data_end, place)) status = Malformed("data");
    return status;
  }
  absl::StatusOr<std::shared_ptr<Buffer>> data = in->TakeBuffer(data_end);
  if (data.ok()) data = OffDestinations(*draft, *std::move(data));
  if (!data.ok()) return data.status();
  draft->data = *std::move(data);
  return absl::OkStatus();
}

absl::Status ReadChecksum(SliceReader* in, size_t end, Draft* draft) {
  uint64_t checksum;
  if (!in->ReadFixed64(end, &checksum)) return Malformed("checksum");
  draft->checksum = checksum;
  return absl::OkStatus();
}

absl::Status ReadTensor(SliceReader* in, size_t end, Draft* draft) {
  while (in->position() < end) {
    uint32_t field;
    uint32_t wire_type;
    if (!in->ReadTag(end, &field, &wire_type)) return Malformed("tensor");
    absl::Status status;
    if (field == kDTypeField && wire_type == kVarint) {
      status = ReadDType(in, end, draft);
    } else if (field == kShapeField && wire_type == kLengthDelimited) {
      status = ReadShape(in, end, draft);
    } else if (field == kShapeField && wire_type == kVarint) {
      status = AppendDimension(in, end, draft);
    } else if (field == kDataField && wire_type == kLengthDelimited) {
      status = ReadData(in, end, draft);
    } else if (field == kChecksumField && wire_type == kFixed64) {
      status = ReadChecksum(in, end, draft);
    } else if (!in->SkipValue(end, field, wire_type)) {
      status = Malformed("field of a tensor");
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status ReadName(SliceReader* in, size_t end, Draft* draft) {
  size_t name_end;
  if (!in->ReadLength(end, &name_end)) return Malformed("name");
  draft->name.clear();
  if (!in->AppendTo(name_end, &draft->name)) return Malformed("name");
  if (!IsUtf8(draft->name)) return Malformed("name: it is not UTF-8");
  return absl::OkStatus();
}

absl::Status ReadNamedTensor(SliceReader* in, size_t end, Draft* draft) {
  while (in->position() < end) {
    uint32_t field;
    uint32_t wire_type;
    size_t field_end;
    if (!in->ReadTag(end, &field, &wire_type)) return Malformed("named tensor");
    absl::Status status;
    if (field == kNameField && wire_type == kLengthDelimited) {
      status = ReadName(in, end, draft);
    } else if (field == kTensorField && wire_type == kLengthDelimited) {
      status = in->ReadLength(end, &field_end)
                   ? ReadTensor(in, field_end, draft)
                   : Malformed("tensor");
    } else if (!in->SkipValue(end, field, wire_type)) {
      status = Malformed("field of a named tensor");
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Returns true if the transport has received `tensor` in place into `into`, on
// a device.
bool HasLandedIn(const Tensor& into, const Tensor& tensor) {
  return tensor.device() == into.device() &&
         tensor.buffer()->device_address() == into.buffer()->device_address();
}

// Schedules the copy of a tensor on a device to its destination. Nobody may use
// the elements before the copy.
absl::Status PlaceFromDevice(const Draft& draft, Tensor* tensor) {
  Destination* const found =
      draft.destinations->Find(draft.name, tensor->dtype(), tensor->shape());
  if (found == nullptr) {
    absl::StatusOr<Tensor> there =
        draft.copies->WithoutDestination(std::move(*tensor));
    if (!there.ok()) return there.status();
    *tensor = *std::move(there);
    return absl::OkStatus();
  }
  found->landed = HasLandedIn(found->into, *tensor);
  absl::Status status;
  if (!found->landed) status = draft.copies->Add(std::move(*tensor), found);
  *tensor = found->into;
  found->used = status;
  return status;
}

// Moves the tensor into its destination, unless it has none or is already
// there. Moves the tensor out of the destination of another tensor.
absl::Status Place(const Draft& draft, Tensor* tensor) {
  if (draft.destinations->empty()) return absl::OkStatus();
  Destination* const found =
      draft.destinations->Find(draft.name, tensor->dtype(), tensor->shape());
  if (draft.placed != nullptr && draft.placed != found) {
    absl::StatusOr<Tensor> copy = tensor->Copy(HeapAllocator());
    if (!copy.ok()) return copy.status();
    *tensor = *std::move(copy);
  }
  if (found == nullptr) return absl::OkStatus();
  if (!found->into.device().is_host()) {
    absl::Status status = draft.copies->Add(std::move(*tensor), found);
    if (!status.ok()) return status;
  } else if (found != draft.placed && tensor->byte_size() > 0) {
    absl::Status status = draft.landed->MoveAway(*found);
    if (!status.ok()) return status;
    memcpy(found->into.buffer()->mutable_data(), tensor->bytes().data(),
           tensor->byte_size());
  }
  *tensor = found->into;
  found->used = absl::OkStatus();
  found->landed = found == draft.placed && draft.is_landed;
  return absl::OkStatus();
}

// Verifies a tensor's checksum. First copies a tensor on a device to the host,
// so that the peer cannot change the bytes after the check.
absl::Status CheckChecksum(const Draft& draft, Tensor* tensor) {
  if (!draft.checksum.has_value()) return absl::OkStatus();
  absl::StatusOr<Tensor> here = tensor->ToHost(HeapAllocator());
  if (!here.ok()) return here.status();
  *tensor = *std::move(here);
  if (*draft.checksum == ChecksumOf(tensor->bytes())) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "decode bundle: tensor ", Quoted(draft.name), ", ", tensor->ToString(),
      ": its bytes do not have the checksum that its sender gave; were they "
      "written to while they were sent?"));
}

// Moves the draft's type, shape and data to `tensor`.
absl::Status Finish(Draft* draft, Tensor* tensor) {
  if (!IsDType(draft->dtype)) {
    return absl::InvalidArgumentError(
        absl::StrCat("decode bundle: tensor ", Quoted(draft->name),
                     " has unknown element type ", draft->dtype));
  }
  absl::StatusOr<Tensor> made =
      Tensor::FromBuffer(static_cast<DType>(draft->dtype),
                         std::move(draft->shape), std::move(draft->data));
  if (!made.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("decode bundle: tensor ",
                                                   Quoted(draft->name), ": ",
                                                   made.status().message()));
  }
  *tensor = *std::move(made);
  absl::Status status = CheckChecksum(*draft, tensor);
  if (!status.ok()) return status;
  if (!tensor->device().is_host()) return PlaceFromDevice(*draft, tensor);
  status = Place(*draft, tensor);
  if (!status.ok()) return status;
  if (tensor->byte_size() >= kCopyBelowBytes || tensor->IsAligned() ||
      !tensor->device().is_host()) {
    return absl::OkStatus();
  }
  absl::StatusOr<Tensor> aligned = tensor->Aligned();
  if (!aligned.ok()) return aligned.status();
  *tensor = *std::move(aligned);
  return absl::OkStatus();
}

// If the tensor that ends at `end` is plain, valid and in place, appends it and
// returns true. Otherwise changes nothing and returns false.
bool AppendPlainTensor(SliceReader* in, size_t end, Bundle* bundle) {
  PlainTensor plain;
  if (!ReadPlainTensor(in->PeekTo(end), &plain)) return false;
  std::string name(plain.name);
  if (!IsUtf8(name)) return false;
  absl::StatusOr<Tensor> tensor = Tensor::FromBuffer(
      plain.dtype, std::move(plain.shape),
      plain.data.empty() ? nullptr : in->ShareBuffer(plain.data));
  if (!tensor.ok()) return false;
  if (tensor->byte_size() < kCopyBelowBytes && !tensor->IsAligned()) {
    return false;
  }
  bundle->tensors.push_back({std::move(name), *std::move(tensor)});
  in->SkipTo(end);
  return true;
}

absl::Status AppendTensor(SliceReader* in, size_t end,
                          DestinationSet* destinations, Landed* landed,
                          DeviceCopies* copies, Bundle* bundle) {
  size_t field_end;
  if (!in->ReadLength(end, &field_end)) return Malformed("named tensor");
  if (destinations->empty() && AppendPlainTensor(in, field_end, bundle)) {
    return absl::OkStatus();
  }
  Draft draft;
  draft.destinations = destinations;
  draft.landed = landed;
  draft.copies = copies;
  absl::Status status = ReadNamedTensor(in, field_end, &draft);
  if (!status.ok()) return status;
  bundle->tensors.emplace_back();
  NamedTensor& named = bundle->tensors.back();
  status = Finish(&draft, &named.tensor);
  named.name = std::move(draft.name);
  return status;
}

// Copies the tensors if they make up less than half of the message that they
// share. A bundle that a program keeps thus holds at most about twice its size.
absl::Status DropPadding(size_t message_size, Bundle* bundle) {
  constexpr size_t kAllowed = SliceReader::kReceiveBlockBytes;
  if (message_size < kAllowed ||
      (message_size - kAllowed) / 2 <= bundle->byte_size()) {
    return absl::OkStatus();
  }
  for (NamedTensor& named : bundle->tensors) {
    if (named.tensor.held_bytes() == named.tensor.byte_size()) continue;
    // Skips a tensor on a device: it is in a destination, or is kept by kKeep.
    if (!named.tensor.device().is_host()) continue;
    absl::StatusOr<Tensor> copy = named.tensor.Copy(HeapAllocator());
    if (!copy.ok()) return copy.status();
    named.tensor = *std::move(copy);
  }
  return absl::OkStatus();
}

absl::Status ReadHeader(SliceReader* in, size_t end, std::string* header) {
  size_t field_end;
  // Appends the bytes. Protobuf merges the parts of a message field, which is
  // equivalent to concatenating their bytes.
  if (!in->ReadLength(end, &field_end) || !in->AppendTo(field_end, header)) {
    return Malformed("header");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Bundle> Decode(const grpc::ByteBuffer& message,
                              std::string* header,
                              absl::Span<Destination> destinations,
                              DeviceTensors device_tensors) {
  DestinationSet places(destinations);
  absl::StatusOr<SliceReader> in = SliceReader::Over(message);
  if (!in.ok()) return in.status();
  if (header != nullptr) header->clear();
  Landed landed(&*in, &places);
  absl::Status started = landed.Start();
  if (!started.ok()) return started;
  DeviceCopies copies(&places, device_tensors);
  Bundle bundle;
  while (in->position() < in->size()) {
    uint32_t field;
    uint32_t wire_type;
    if (!in->ReadTag(in->size(), &field, &wire_type)) return Malformed("tag");
    absl::Status status;
    if (field == kTensorsField && wire_type == kLengthDelimited) {
      status =
          AppendTensor(&*in, in->size(), &places, &landed, &copies, &bundle);
    } else if (header != nullptr && field == kHeaderField &&
               wire_type == kLengthDelimited) {
      status = ReadHeader(&*in, in->size(), header);
    } else if (!in->SkipValue(in->size(), field, wire_type)) {
      status = Malformed("field");
    }
    if (!status.ok()) return status;
  }
  absl::Status copied = copies.Run();
  if (!copied.ok()) return copied;
  absl::Status dropped = DropPadding(in->size(), &bundle);
  if (!dropped.ok()) return dropped;
  return bundle;
}

}  // namespace penstock::tensor
