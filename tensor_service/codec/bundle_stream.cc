#include "tensor_service/codec/bundle_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensor_service/buffer.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/message.h"
#include "tensor_service/text.h"

namespace penstock::tensor {
namespace {

// An upper bound for the encoding of a tensor and the header of a piece,
// without the tensor's name and elements, in bytes.
constexpr size_t kOverheadBytes = 1024;

// Pieces begin at this alignment, like whole tensors.
constexpr size_t kPieceAlignment = kPayloadAlignment;

size_t InLimits(size_t max_message_bytes) {
  if (max_message_bytes == 0) return kStreamMessageBytes;
  return std::min(std::max(max_message_bytes, kMinStreamMessageBytes),
                  kMaxStreamMessageBytes);
}

size_t EncodedBytes(const NamedTensor& named) {
  return kOverheadBytes + named.name.size() + named.tensor.byte_size();
}

absl::Status Refused(const std::string& name, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("join stream: tensor ", Quoted(name), ": ", why));
}

// Allocates memory of `device`. Allocates on the heap if `device` is the host
// or has no memory left.
absl::StatusOr<std::shared_ptr<Buffer>> AllocateOn(const Device& device,
                                                   size_t size) {
  if (device.is_host()) return HeapAllocator()->Allocate(size);
  absl::StatusOr<DeviceMemory*> memory = NeedDeviceMemory("join tensors");
  if (!memory.ok()) return memory.status();
  absl::StatusOr<std::shared_ptr<Buffer>> there =
      (*memory)->Allocate(device, size);
  if (!absl::IsResourceExhausted(there.status())) return there;
  return HeapAllocator()->Allocate(size);
}

// Copies the elements of `from`, which may be empty, to `to`, starting at
// `offset`. `name` is for error messages.
absl::Status CopyInto(const std::shared_ptr<Buffer>& to, size_t offset,
                      const Tensor& from, const std::string& name) {
  const size_t size = from.byte_size();
  if (size == 0) return absl::OkStatus();
  const bool from_host = from.device().is_host();
  const bool to_host = to->device().is_host();
  if (from_host && to_host) {
    memcpy(to->mutable_data() + offset, from.bytes().data(), size);
    return absl::OkStatus();
  }
  absl::StatusOr<DeviceMemory*> memory =
      NeedDeviceMemory(absl::StrCat("join tensor ", Quoted(name)));
  if (!memory.ok()) return memory.status();
  if (to_host) {
    const CopyToHost copy = {from.buffer().get(), 0, size,
                             to->mutable_data() + offset};
    return (*memory)->Copy(absl::MakeConstSpan(&copy, 1));
  }
  if (from_host) {
    const CopyFromHost copy = {from.bytes().data(), size, to.get(), offset};
    return (*memory)->Copy(absl::MakeConstSpan(&copy, 1));
  }
  const auto part = Buffer::PartOf(to, offset, size);
  const CopyOnDevice copy = {from.buffer().get(), part.get(), size};
  return (*memory)->Copy(absl::MakeConstSpan(&copy, 1));
}

// Makes a tensor on a device read-only, because shared device memory has no
// other protection.
NamedTensor Complete(NamedTensor named) {
  const Tensor& tensor = named.tensor;
  if (tensor.device().is_host()) return named;
  auto read_only = Buffer::PartOf(tensor.buffer(), 0, tensor.byte_size());
  named.tensor =
      *Tensor::FromBuffer(tensor.dtype(), tensor.shape(), std::move(read_only));
  return named;
}

}  // namespace

BundleCutter::BundleCutter(Bundle bundle, size_t max_message_bytes)
    : bundle_(std::move(bundle)),
      max_message_bytes_(InLimits(max_message_bytes)) {}

size_t BundleCutter::PieceBytes(const NamedTensor& named) const {
  const size_t taken = kOverheadBytes + named.name.size();
  const size_t room =
      max_message_bytes_ > taken ? max_message_bytes_ - taken : 0;
  return std::max(room, kOverheadBytes) / kPieceAlignment * kPieceAlignment;
}

absl::StatusOr<grpc::ByteBuffer> BundleCutter::NextPiece() {
  const NamedTensor& named = bundle_.tensors[next_];
  const size_t size = named.tensor.byte_size();
  const size_t count = std::min(PieceBytes(named), size - offset_);
  Message<v1::PartHeader> message;
  v1::Piece* const piece = message.header.mutable_piece();
  piece->set_dtype(static_cast<v1::DType>(named.tensor.dtype()));
  for (const int64_t dimension : named.tensor.shape()) {
    piece->add_shape(dimension);
  }
  piece->set_offset(offset_);
  // Takes only this piece, so that Encode() copies no more to the host if the
  // tensor is on a device.
  absl::StatusOr<Tensor> bytes =
      Tensor::FromBuffer(DType::kUint8, {static_cast<int64_t>(count)},
                         Buffer::PartOf(named.tensor.buffer(), offset_, count));
  if (!bytes.ok()) return bytes.status();
  message.bundle.tensors.push_back({named.name, *std::move(bytes)});
  offset_ += count;
  if (offset_ == size) {
    offset_ = 0;
    ++next_;
  }
  done_ = next_ == bundle_.tensors.size();
  message.header.set_is_last(done_);
  return Encode(message);
}

absl::StatusOr<grpc::ByteBuffer> BundleCutter::Next() {
  const auto& tensors = bundle_.tensors;
  if (next_ < tensors.size() &&
      tensors[next_].tensor.byte_size() > PieceBytes(tensors[next_])) {
    return NextPiece();
  }
  Message<v1::PartHeader> message;
  size_t bytes = 0;
  while (next_ < tensors.size()) {
    const NamedTensor& named = tensors[next_];
    const size_t more = EncodedBytes(named);
    const bool is_large = named.tensor.byte_size() >= kOwnMessageBytes;
    if (bytes > 0 && (is_large || more > max_message_bytes_ - bytes)) break;
    message.bundle.tensors.push_back(named);
    ++next_;
    bytes += more;
    if (is_large || bytes >= max_message_bytes_) break;
  }
  done_ = next_ == tensors.size();
  message.header.set_is_last(done_);
  return Encode(message);
}

BundleJoiner::BundleJoiner(Reserve reserve, DeviceTensors device_tensors,
                           absl::Span<Destination> destinations)
    : reserve_(std::move(reserve)),
      device_tensors_(device_tensors),
      destinations_(destinations) {}

absl::Status BundleJoiner::Add(const grpc::ByteBuffer& message) {
  if (is_complete_) {
    return absl::InvalidArgumentError(
        "join stream: a message comes after the last one");
  }
  Message<v1::PartHeader> part;
  absl::Status status = Decode(message, &part, {}, device_tensors_);
  if (!status.ok()) return status;
  status = part.header.has_piece() ? AddPiece(part.header.piece(), part.bundle)
                                   : AddWhole(part.bundle);
  if (!status.ok()) return status;
  is_complete_ = part.header.is_last();
  if (!is_complete_ || !has_draft_) return absl::OkStatus();
  return Refused(draft_.named.name,
                 absl::StrCat("the stream ends at byte ", draft_.filled, " of ",
                              draft_.named.tensor.byte_size()));
}

absl::Status BundleJoiner::AddWhole(const Bundle& bundle) {
  const size_t first = bundle_.tensors.size();
  std::vector<std::pair<size_t, Destination*>> placed;
  Bundle whole;
  for (const NamedTensor& named : bundle.tensors) {
    if (has_draft_) {
      return Refused(named.name,
                     absl::StrCat("it comes between the pieces of tensor ",
                                  Quoted(draft_.named.name)));
    }
    Destination* const into = destinations_.Find(
        named.name, named.tensor.dtype(), named.tensor.shape());
    if (into != nullptr) {
      absl::Status copied =
          CopyInto(into->into.buffer(), 0, named.tensor, named.name);
      if (!copied.ok()) return copied;
      into->used = absl::OkStatus();
      placed.emplace_back(first + whole.tensors.size(), into);
      whole.tensors.push_back({named.name, Tensor()});
      continue;
    }
    const bool is_host = named.tensor.device().is_host();
    absl::StatusOr<Tensor> tensor =
        is_host ? named.tensor.Compact() : named.tensor;
    if (!tensor.ok()) return tensor.status();
    if (reserve_) {
      absl::Status reserved = reserve_(
          named.name, is_host ? tensor->held_bytes() : tensor->byte_size());
      if (!reserved.ok()) return reserved;
    }
    whole.tensors.push_back({named.name, *std::move(tensor)});
  }
  absl::StatusOr<Bundle> own = OwnOnDevices(whole);
  if (!own.ok()) return own.status();
  for (NamedTensor& named : own->tensors) {
    bundle_.tensors.push_back(std::move(named));
  }
  for (const auto& [at, into] : placed) bundle_.tensors[at].tensor = into->into;
  return absl::OkStatus();
}

absl::Status BundleJoiner::StartDraft(const v1::Piece& piece,
                                      const std::string& name,
                                      const Device& device) {
  if (!IsDType(piece.dtype())) {
    return Refused(
        name, absl::StrCat("its element type ", piece.dtype(), " is unknown"));
  }
  const auto dtype = static_cast<DType>(piece.dtype());
  Shape shape(piece.shape().begin(), piece.shape().end());
  const absl::StatusOr<size_t> size = ByteSize(dtype, shape);
  if (!size.ok()) return Refused(name, size.status().message());
  draft_.destination = destinations_.Find(name, dtype, shape);
  if (draft_.destination != nullptr) {
    draft_.named = {name, draft_.destination->into};
    has_draft_ = true;
    return absl::OkStatus();
  }
  return AllocateDraft(piece, name, device, *size);
}

absl::Status BundleJoiner::AllocateDraft(const v1::Piece& piece,
                                         const std::string& name,
                                         const Device& device, size_t size) {
  if (reserve_) {
    absl::Status reserved = reserve_(name, size);
    if (!reserved.ok()) return reserved;
  }
  absl::StatusOr<std::shared_ptr<Buffer>> buffer = AllocateOn(device, size);
  if (!buffer.ok()) return buffer.status();
  absl::StatusOr<Tensor> tensor = Tensor::FromBuffer(
      static_cast<DType>(piece.dtype()),
      Shape(piece.shape().begin(), piece.shape().end()), *std::move(buffer));
  if (!tensor.ok()) return tensor.status();
  draft_.named = {name, *std::move(tensor)};
  has_draft_ = true;
  return absl::OkStatus();
}

void BundleJoiner::EndDraft() {
  if (draft_.destination != nullptr) {
    draft_.destination->used = absl::OkStatus();
    bundle_.tensors.push_back(std::move(draft_.named));
  } else {
    bundle_.tensors.push_back(Complete(std::move(draft_.named)));
  }
  draft_ = Draft();
  has_draft_ = false;
}

bool BundleJoiner::IsOfDraft(const v1::Piece& piece,
                             const std::string& name) const {
  const Tensor& tensor = draft_.named.tensor;
  return name == draft_.named.name &&
         piece.dtype() == static_cast<int>(tensor.dtype()) &&
         std::equal(piece.shape().begin(), piece.shape().end(),
                    tensor.shape().begin(), tensor.shape().end());
}

absl::Status BundleJoiner::AddPiece(const v1::Piece& piece,
                                    const Bundle& bundle) {
  if (bundle.tensors.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("join stream: a message with a piece has ",
                     bundle.tensors.size(), " tensors; it must have one"));
  }
  const std::string& name = bundle.tensors[0].name;
  const Tensor& bytes = bundle.tensors[0].tensor;
  if (bytes.dtype() != DType::kUint8 || bytes.shape().size() != 1 ||
      bytes.byte_size() == 0) {
    return Refused(name, absl::StrCat("a piece is ", bytes.ToString(),
                                      "; it must be bytes, and not empty"));
  }
  if (has_draft_ && !IsOfDraft(piece, name)) {
    return Refused(name, absl::StrCat("a piece of it comes while tensor ",
                                      Quoted(draft_.named.name),
                                      " is not complete, or differs from it"));
  }
  if (!has_draft_) {
    if (piece.offset() != 0) return Refused(name, "its first piece is missing");
    absl::Status started = StartDraft(piece, name, bytes.device());
    if (!started.ok()) return started;
  }
  const size_t size = draft_.named.tensor.byte_size();
  if (piece.offset() != draft_.filled ||
      bytes.byte_size() > size - draft_.filled) {
    return Refused(
        name, absl::StrCat("a piece of ", bytes.byte_size(), " bytes at byte ",
                           piece.offset(), ", where byte ", draft_.filled,
                           " of ", size, " is next"));
  }
  absl::Status copied =
      CopyInto(draft_.named.tensor.buffer(), draft_.filled, bytes, name);
  if (!copied.ok()) return copied;
  draft_.filled += bytes.byte_size();
  if (draft_.filled == size) EndDraft();
  return absl::OkStatus();
}

absl::StatusOr<Bundle> BundleJoiner::Take() {
  if (is_complete_) return std::move(bundle_);
  return absl::DataLossError(absl::StrCat("join stream: it was cut after ",
                                          bundle_.tensors.size(), " tensors"));
}

}  // namespace penstock::tensor
