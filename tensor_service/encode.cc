#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "tensor_service/codec.h"
#include "tensor_service/wire.h"

namespace penstock::tensor {
namespace {

using google::protobuf::io::CodedOutputStream;

size_t LengthDelimitedSize(size_t length) {
  return 1 + CodedOutputStream::VarintSize64(length) + length;
}

void AppendVarint(uint64_t value, std::string* out) {
  uint8_t bytes[10];
  uint8_t* end = CodedOutputStream::WriteVarint64ToArray(value, bytes);
  out->append(reinterpret_cast<char*>(bytes), end - bytes);
}

void AppendLengthDelimited(uint8_t tag, size_t length, std::string* out) {
  out->push_back(static_cast<char>(tag));
  AppendVarint(length, out);
}

// The sizes in the encoding of a NamedTensor, in bytes.
struct Layout {
  size_t shape_size;    // of the packed dimensions
  size_t padding_size;  // of the whole field; 0 if there is none
  size_t tensor_size;   // of the Tensor message
  size_t named_size;    // of the NamedTensor message
};

Layout Measure(const NamedTensor& named, size_t padding_size) {
  Layout layout = {0, padding_size, 0, 0};
  for (int64_t dimension : named.tensor.shape()) {
    layout.shape_size += CodedOutputStream::VarintSize64(dimension);
  }
  layout.tensor_size = 2 + padding_size;  // 2: dtype and its tag
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

// Returns the bytes in a padding field of `padding_size` bytes in all: its tag
// takes one byte, its length one or two.
size_t PaddingBytes(size_t padding_size) {
  return padding_size - (padding_size < 130 ? 2 : 3);
}

// No field has so many bytes.
bool IsNoPaddingSize(size_t size) { return size == 1 || size == 130; }

// Where elements are to begin in the message: at `rest` modulo `modulus`.
struct Alignment {
  size_t modulus;
  size_t rest;
};

// See kPayloadAlignment. What follows a longer tensor may be a piece of its own
// at the receiver, so it must begin at a multiple of kPartAlignment.
Alignment AlignmentOf(const Tensor& tensor) {
  const size_t size = tensor.byte_size();
  if (size == 0) return {1, 0};
  if (size < kCopyBelowBytes) return {ElementSize(tensor.dtype()), 0};
  if (size % kPartAlignment == 0) return {kPayloadAlignment, 0};
  return {kPayloadAlignment, kPayloadAlignment - size % kPayloadAlignment};
}

// Returns a layout that puts the elements of a tensor where AlignmentOf() says,
// if its encoding starts at `offset`. Padding can widen the two lengths in
// front of it, so this takes a few rounds. Each adds less than twice the
// modulus, and a length is not widened twice by so little, so the rounds end.
Layout AlignedLayout(const NamedTensor& named, size_t offset) {
  const Alignment wanted = AlignmentOf(named.tensor);
  size_t padding = 0;
  for (;;) {
    Layout layout = Measure(named, padding);
    size_t payload_at = offset + LengthDelimitedSize(layout.named_size) -
                        named.tensor.byte_size();
    size_t missing =
        (wanted.rest + wanted.modulus - payload_at % wanted.modulus) %
        wanted.modulus;
    if (missing == 0) return layout;
    padding += missing;
    if (IsNoPaddingSize(padding)) padding += wanted.modulus;
  }
}

void AppendPadding(size_t padding_size, std::string* out) {
  if (padding_size == 0) return;
  const size_t bytes = PaddingBytes(padding_size);
  AppendLengthDelimited(kTensorPaddingTag, bytes, out);
  out->append(bytes, '\0');
}

// Appends all of the NamedTensor but its elements.
void AppendHeader(const NamedTensor& named, const Layout& layout,
                  std::string* out) {
  AppendLengthDelimited(kTensorsTag, layout.named_size, out);
  if (!named.name.empty()) {
    AppendLengthDelimited(kNameTag, named.name.size(), out);
    out->append(named.name);
  }
  AppendLengthDelimited(kTensorTag, layout.tensor_size, out);
  out->push_back(static_cast<char>(kDTypeTag));
  out->push_back(static_cast<char>(named.tensor.dtype()));
  if (layout.shape_size > 0) {
    AppendLengthDelimited(kShapeTag, layout.shape_size, out);
    for (int64_t dimension : named.tensor.shape()) AppendVarint(dimension, out);
  }
  AppendPadding(layout.padding_size, out);
  if (named.tensor.byte_size() > 0) {
    AppendLengthDelimited(kDataTag, named.tensor.byte_size(), out);
  }
}

// Collects a message as slices, in order: of headers and short tensors, and of
// whole long tensors.
class Writer {
 public:
  absl::Status Add(const NamedTensor& named) {
    if (!IsUtf8(named.name)) {
      return absl::InvalidArgumentError("encode tensor: name is not UTF-8");
    }
    bool refer = named.tensor.byte_size() >= kCopyBelowBytes;
    Layout layout = AlignedLayout(named, size());
    AppendHeader(named, layout, &pending_);
    if (refer) {
      Flush();
      slices_.push_back(SliceOf(named.tensor.buffer()));
      flushed_ += named.tensor.byte_size();
    } else {
      absl::string_view bytes = named.tensor.bytes();
      pending_.append(bytes.data(), bytes.size());
    }
    return CheckSize(named);
  }

  void AddHeader(absl::string_view header) {
    AppendLengthDelimited(kHeaderTag, header.size(), &pending_);
    pending_.append(header.data(), header.size());
  }

  grpc::ByteBuffer Take() {
    Flush();
    // An empty message is one empty slice. No slices at all would be no
    // message.
    if (slices_.empty()) slices_.emplace_back();
    return grpc::ByteBuffer(slices_.data(), slices_.size());
  }

 private:
  size_t size() const { return flushed_ + pending_.size(); }

  absl::Status CheckSize(const NamedTensor& named) const {
    if (size() <= kMaxMessageBytes) return absl::OkStatus();
    return absl::ResourceExhaustedError(absl::StrCat(
        "encode tensor ", named.name, ": the bundle exceeds the ",
        kMaxMessageBytes, " bytes of a gRPC message; send it in parts"));
  }

  void Flush() {
    if (pending_.empty()) return;
    slices_.emplace_back(pending_);
    flushed_ += pending_.size();
    pending_.clear();
  }

  std::vector<grpc::Slice> slices_;
  size_t flushed_ = 0;
  std::string pending_;
};

}  // namespace

absl::StatusOr<grpc::ByteBuffer> Encode(const Bundle& bundle,
                                        absl::string_view header) {
  Writer writer;
  if (!header.empty()) writer.AddHeader(header);
  for (const NamedTensor& named : bundle.tensors) {
    absl::Status status = writer.Add(named);
    if (!status.ok()) return status;
  }
  return writer.Take();
}

}  // namespace penstock::tensor
