#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/io/coded_stream.h"
#include "tensor_service/codec.h"
#include "tensor_service/codec/encode_header.h"
#include "tensor_service/codec/lent_tensors.h"
#include "tensor_service/codec/wire.h"
#include "tensor_service/text.h"

namespace penstock::tensor {
namespace {

using google::protobuf::io::CodedOutputStream;

size_t LengthDelimitedSize(size_t length) {
  return 1 + CodedOutputStream::VarintSize64(length) + length;
}

// The sizes in the encoding of a NamedTensor, in bytes.
struct Layout {
  size_t shape_size;    // of the packed dimensions
  size_t padding_size;  // of the whole field; 0 if there is none
  size_t tensor_size;   // of the Tensor message
  size_t named_size;    // of the NamedTensor message
};

// Returns true if the elements are a separate slice.
bool IsReferred(const Tensor& tensor) {
  return tensor.byte_size() >= kCopyBelowBytes;
}

// The size of a whole checksum field, in bytes.
constexpr size_t kChecksumSize = 1 + sizeof(uint64_t);

Layout MeasureWithoutPadding(const NamedTensor& named, bool checksums) {
  Layout layout = {0, 0, 2, 0};  // dtype and its tag
  if (checksums) layout.tensor_size += kChecksumSize;
  for (int64_t dimension : named.tensor.shape()) {
    layout.shape_size += CodedOutputStream::VarintSize64(dimension);
  }
  if (layout.shape_size > 0) {
    layout.tensor_size += LengthDelimitedSize(layout.shape_size);
  }
  if (named.tensor.byte_size() > 0) {
    layout.tensor_size += LengthDelimitedSize(named.tensor.byte_size());
  }
  layout.named_size = LengthDelimitedSize(layout.tensor_size);
  if (!named.name.empty()) {
    layout.named_size += LengthDelimitedSize(named.name.size());
  }
  return layout;
}

void AddPadding(size_t bytes, Layout* layout) {
  const size_t before = LengthDelimitedSize(layout->tensor_size);
  layout->padding_size += bytes;
  layout->tensor_size += bytes;
  layout->named_size += LengthDelimitedSize(layout->tensor_size) - before;
}

// Returns the bytes in a padding field of `padding_size` bytes in all: its tag
// takes one byte, its length one or two.
size_t PaddingBytes(size_t padding_size) {
  return padding_size - (padding_size < 130 ? 2 : 3);
}

// Returns true if no padding field has this total size.
bool IsNoPaddingSize(size_t size) { return size == 1 || size == 130; }

// The required position of elements in the message: `rest` modulo `modulus`.
struct Alignment {
  size_t modulus;
  size_t rest;
};

// Returns the required position; see kPayloadAlignment. The part after a longer
// tensor may be a separate piece at the receiver, so that part must also begin
// at a multiple of kPartAlignment.
Alignment AlignmentOf(const Tensor& tensor) {
  const size_t size = tensor.byte_size();
  if (size == 0) return {1, 0};
  if (size < kCopyBelowBytes) return {ElementSize(tensor.dtype()), 0};
  if (size % kPartAlignment == 0) return {kPayloadAlignment, 0};
  return {kPayloadAlignment, kPayloadAlignment - size % kPayloadAlignment};
}

// Returns a layout that puts the elements of a tensor where AlignmentOf()
// requires, if its encoding starts at `offset`. Padding can widen the two
// length fields before it, so several rounds may be needed. The rounds
// terminate, because each round adds less than twice the modulus, too little to
// widen a length field twice.
Layout AlignedLayout(const NamedTensor& named, size_t offset, bool checksums) {
  const Alignment wanted = AlignmentOf(named.tensor);
  Layout layout = MeasureWithoutPadding(named, checksums);
  for (;;) {
    const size_t payload_at = offset + LengthDelimitedSize(layout.named_size) -
                              named.tensor.byte_size();
    // Computes the missing bytes with a mask, because all moduli are powers of
    // two.
    size_t missing = (wanted.rest - payload_at) & (wanted.modulus - 1);
    if (missing == 0) return layout;
    if (IsNoPaddingSize(layout.padding_size + missing)) {
      missing += wanted.modulus;
    }
    AddPadding(missing, &layout);
  }
}

// Writes fields to memory that has room for them.
class FieldWriter {
 public:
  explicit FieldWriter(uint8_t* at) : at_(at) {}

  uint8_t* at() const { return at_; }

  void Varint(uint64_t value) {
    at_ = CodedOutputStream::WriteVarint64ToArray(value, at_);
  }

  void LengthDelimited(uint8_t tag, size_t length) {
    *at_++ = tag;
    Varint(length);
  }

  void Bytes(absl::string_view bytes) {
    if (bytes.empty()) return;
    memcpy(at_, bytes.data(), bytes.size());
    at_ += bytes.size();
  }

  void Padding(size_t padding_size) {
    if (padding_size == 0) return;
    const size_t bytes = PaddingBytes(padding_size);
    LengthDelimited(kTensorPaddingTag, bytes);
    memset(at_, 0, bytes);
    at_ += bytes;
  }

  void Checksum(uint64_t checksum) {
    *at_++ = kChecksumTag;
    memcpy(at_, &checksum, sizeof(checksum));  // little-endian, like the host
    at_ += sizeof(checksum);
  }

  // Writes the whole NamedTensor except its elements.
  void HeaderOf(const NamedTensor& named, const Layout& layout,
                bool checksums) {
    LengthDelimited(kTensorsTag, layout.named_size);
    if (!named.name.empty()) {
      LengthDelimited(kNameTag, named.name.size());
      Bytes(named.name);
    }
    LengthDelimited(kTensorTag, layout.tensor_size);
    *at_++ = kDTypeTag;
    *at_++ = static_cast<uint8_t>(named.tensor.dtype());
    if (layout.shape_size > 0) {
      LengthDelimited(kShapeTag, layout.shape_size);
      for (int64_t dimension : named.tensor.shape()) Varint(dimension);
    }
    if (checksums) Checksum(ChecksumOf(named.tensor.bytes()));
    Padding(layout.padding_size);
    if (named.tensor.byte_size() > 0) {
      LengthDelimited(kDataTag, named.tensor.byte_size());
    }
  }

 private:
  uint8_t* at_;
};

// The layout of a message.
struct Plan {
  bool checksums;
  std::vector<Layout> layouts;  // one per tensor
  // The sizes of the pieces between long tensors. A piece contains headers and
  // short tensors. There is a piece before each long tensor, and a piece at the
  // end, which may be empty.
  std::vector<size_t> pieces;
};

absl::Status TooLong(const NamedTensor& named) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "encode tensor ", Quoted(named.name), ": the bundle exceeds the ",
      kMaxMessageBytes, " bytes of a gRPC message; send it in parts"));
}

absl::StatusOr<Plan> MakePlan(const Bundle& bundle, size_t header_size,
                              bool checksums) {
  Plan plan;
  plan.checksums = checksums;
  plan.layouts.reserve(bundle.tensors.size());
  size_t size = header_size;
  if (size > kMaxMessageBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("encode header of ", size, " bytes: it exceeds the ",
                     kMaxMessageBytes, " bytes of a gRPC message"));
  }
  size_t piece_at = 0;
  for (const NamedTensor& named : bundle.tensors) {
    if (!IsUtf8(named.name)) {
      return absl::InvalidArgumentError("encode tensor: name is not UTF-8");
    }
    plan.layouts.push_back(AlignedLayout(named, size, checksums));
    size += LengthDelimitedSize(plan.layouts.back().named_size);
    if (size > kMaxMessageBytes) return TooLong(named);
    if (IsReferred(named.tensor)) {
      plan.pieces.push_back(size - named.tensor.byte_size() - piece_at);
      piece_at = size;
    }
  }
  plan.pieces.push_back(size - piece_at);
  return plan;
}

bool HasDeviceTensors(const Bundle& bundle) {
  return std::any_of(bundle.tensors.begin(), bundle.tensors.end(),
                     [](const NamedTensor& named) {
                       return !named.tensor.device().is_host();
                     });
}

// Makes the slices of a message. The pieces share one block of memory. Each
// piece begins at a multiple of kPartAlignment in the block.
class Writer {
 public:
  explicit Writer(const Plan& plan) : plan_(plan), block_(BlockSize(plan)) {
    slices_.reserve(2 * plan.pieces.size());
  }

  // Writes a whole message. An empty `header` is omitted. `lent` has the slices
  // of tensors on devices (LentTensors), or is empty.
  grpc::ByteBuffer Write(const Bundle& bundle, absl::string_view header,
                         absl::Span<const grpc::Slice> lent = {}) {
    FieldWriter out(block());
    if (!header.empty()) {
      out.LengthDelimited(kHeaderTag, header.size());
      out.Bytes(header);
    }
    for (size_t i = 0; i < bundle.tensors.size(); ++i) {
      const NamedTensor& named = bundle.tensors[i];
      out.HeaderOf(named, plan_.layouts[i], plan_.checksums);
      if (IsReferred(named.tensor)) {
        out = FieldWriter(EndPiece());
        const bool is_lent = i < lent.size() && lent[i].size() > 0;
        slices_.push_back(is_lent ? lent[i] : SliceOf(named.tensor.buffer()));
      } else {
        out.Bytes(named.tensor.bytes());
      }
    }
    EndPiece();
    // Adds an empty slice to an empty message, because a buffer without slices
    // is not a message.
    if (slices_.empty()) slices_.emplace_back();
    return grpc::ByteBuffer(slices_.data(), slices_.size());
  }

 private:
  static size_t RoundUp(size_t size) {
    return (size + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
  }

  static size_t BlockSize(const Plan& plan) {
    size_t size = 0;
    for (size_t piece : plan.pieces) size = RoundUp(size) + piece;
    return size;
  }

  // Returns the block for writing. Nobody else uses the block until Write()
  // returns. A short block keeps its bytes in its handle, so the Writer must
  // not move.
  uint8_t* block() { return const_cast<uint8_t*>(block_.begin()); }

  // Adds the piece that was just written. Returns the start of the next piece.
  uint8_t* EndPiece() {
    const size_t end = piece_at_ + plan_.pieces[piece_++];
    if (end > piece_at_) slices_.push_back(block_.sub(piece_at_, end));
    piece_at_ = RoundUp(end);
    return block() + piece_at_;
  }

  const Plan& plan_;
  grpc::Slice block_;
  std::vector<grpc::Slice> slices_;
  size_t piece_ = 0;
  size_t piece_at_ = 0;
};

}  // namespace

void AppendTensorHeader(const NamedTensor& named, size_t offset,
                        std::string* out) {
  const Layout layout = AlignedLayout(named, offset, /*checksums=*/false);
  const size_t before = out->size();
  out->resize(before + LengthDelimitedSize(layout.named_size) -
              named.tensor.byte_size());
  FieldWriter(reinterpret_cast<uint8_t*>(&(*out)[before]))
      .HeaderOf(named, layout, /*checksums=*/false);
}

absl::StatusOr<grpc::ByteBuffer> Encode(const Bundle& bundle,
                                        absl::string_view header,
                                        bool checksums) {
  const size_t header_size =
      header.empty() ? 0 : LengthDelimitedSize(header.size());
  absl::StatusOr<Plan> plan = MakePlan(bundle, header_size, checksums);
  if (!plan.ok()) return plan.status();
  if (!HasDeviceTensors(bundle)) return Writer(*plan).Write(bundle, header);
  if (checksums) {  // the CPU reads all bytes
    absl::StatusOr<Bundle> here = bundle.ToHost();
    if (!here.ok()) return here.status();
    return Writer(*plan).Write(*here, header);
  }
  absl::StatusOr<LentTensors> lent = LendOrStage(bundle);
  if (!lent.ok()) return lent.status();
  return Writer(*plan).Write(lent->bundle, header, lent->slices);
}

}  // namespace penstock::tensor
