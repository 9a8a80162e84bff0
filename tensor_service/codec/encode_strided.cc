#include "tensor_service/codec/encode_strided.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tensor_service/codec.h"
#include "tensor_service/codec/encode_header.h"
#include "tensor_service/text.h"

namespace penstock::tensor {
namespace {

// Adds views to the slices of a message, in order.
class ViewWriter {
 public:
  ViewWriter(const grpc::ByteBuffer& message, Allocator* allocator)
      : allocator_(allocator), flushed_(message.Length()) {
    // Appends the message's slices. Dump() cannot fail, because the message is
    // not compressed.
    if (flushed_ > 0) message.Dump(&slices_);
  }

  absl::Status Add(const NamedView& named) {
    const StridedView& view = named.view;
    if (!IsUtf8(named.name)) {
      return absl::InvalidArgumentError("encode view: name is not UTF-8");
    }
    // Counts the view's header, and perhaps a header after it.
    const size_t taken = slices_.size() + 2;
    const size_t left = taken < kMaxSlices ? kMaxSlices - taken : 0;
    absl::Status status =
        IsSentInPlace(view, left) ? AddInPlace(named) : AddPacked(named);
    if (!status.ok() || size() <= kMaxMessageBytes) return status;
    return absl::ResourceExhaustedError(absl::StrCat(
        "encode view ", Quoted(named.name), ": the bundle exceeds the ",
        kMaxMessageBytes, " bytes of a gRPC message; send it in parts"));
  }

  grpc::ByteBuffer Take() {
    Flush();
    return grpc::ByteBuffer(slices_.data(), slices_.size());
  }

 private:
  absl::Status AddInPlace(const NamedView& named) {
    const StridedView& view = named.view;
    // Describes the packed tensor, without memory: nobody reads its bytes.
    absl::StatusOr<Tensor> described = Tensor::FromBuffer(
        view.dtype(), view.shape(),
        Buffer::Wrap(nullptr, view.byte_size(), /*writable=*/false, nullptr));
    if (!described.ok()) return described.status();
    AppendTensorHeader({named.name, *std::move(described)}, size(), &pending_);
    Flush();
    view.AppendRuns(&slices_);
    flushed_ += view.byte_size();
    return absl::OkStatus();
  }

  absl::Status AddPacked(const NamedView& named) {
    absl::StatusOr<Tensor> packed = named.view.Pack(allocator_);
    if (!packed.ok()) return packed.status();
    AppendTensorHeader({named.name, *packed}, size(), &pending_);
    if (packed->byte_size() < kCopyBelowBytes) {
      pending_.append(packed->bytes().data(), packed->byte_size());
    } else {
      Flush();
      slices_.push_back(SliceOf(packed->buffer()));
      flushed_ += packed->byte_size();
    }
    return absl::OkStatus();
  }

  size_t size() const { return flushed_ + pending_.size(); }

  void Flush() {
    if (pending_.empty()) return;
    slices_.emplace_back(pending_);
    flushed_ += pending_.size();
    pending_.clear();
  }

  Allocator* const allocator_;
  std::vector<grpc::Slice> slices_;
  size_t flushed_;       // bytes of slices_
  std::string pending_;  // headers and short elements for the next slice
};

}  // namespace

bool IsSentInPlace(const StridedView& view, size_t slices_left) {
  if (view.num_runs() == 1) {
    return view.run_bytes() >= kCopyBelowBytes && slices_left > 0;
  }
  return view.run_bytes() >= kMinRunBytes &&
         view.run_bytes() % kPartAlignment == 0 &&
         view.num_runs() <= slices_left;
}

absl::StatusOr<grpc::ByteBuffer> Encode(const Bundle& bundle,
                                        absl::Span<const NamedView> views,
                                        absl::string_view header,
                                        Allocator* allocator) {
  absl::StatusOr<grpc::ByteBuffer> message = Encode(bundle, header);
  if (!message.ok() || views.empty()) return message;
  ViewWriter writer(*message, allocator);
  for (const NamedView& named : views) {
    absl::Status status = writer.Add(named);
    if (!status.ok()) return status;
  }
  return writer.Take();
}

}  // namespace penstock::tensor
