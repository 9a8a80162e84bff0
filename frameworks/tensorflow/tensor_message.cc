#include "frameworks/tensorflow/tensor_message.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frameworks/tensorflow/lent_tensor.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/protobuf/worker.pb.h"

namespace penstock {
namespace tensorflow {
namespace {

using ::tensorflow::RecvTensorResponse;
using ::tensorflow::Tensor;
using ::tensorflow::TensorResponse;
using ::tensorflow::TensorShape;

// The first byte of an answer's metadata. The rest is a RecvTensorResponse.
constexpr char kBytes = 'b';           // without content, which is the payload
constexpr char kBytesToCopy = 'c';     // like kBytes, but the bytes may change
constexpr char kWhole = 'w';           // with content
constexpr char kWholeInPayload = 'p';  // in the payload

// The size, in bytes, below which a copy costs less than lending.
constexpr size_t kLeastLentBytes = 4096;

absl::Status Malformed() {
  return absl::InternalError("a peer's answer with a tensor is malformed");
}

std::string Contiguous(const memory::Payload& payload) {
  std::string text(payload.size(), '\0');
  payload.CopyTo(reinterpret_cast<uint8_t*>(&text[0]));
  return text;
}

absl::Status TooLarge() {
  return absl::InternalError(
      "Cannot encode a Tensor that exceeds the 2GB protobuf limit.");
}

// Limits the whole message just below protobuf's limit of 2^31. The other
// fields need much less than the difference.
constexpr size_t kMostWholeBytes = (size_t{1} << 31) - (1 << 20);

// The cost of parsing a byte of a string, relative to copying a byte. Strings
// and similar elements are parsed one by one.
constexpr size_t kCopiesPerParsed = 16;

absl::StatusOr<rpc::Response> EncodeWhole(const RecvTensorResponse& whole) {
  rpc::Response response;
  auto text = std::make_shared<std::string>();
  if (!whole.SerializeToString(text.get())) return TooLarge();
  if (text->size() < rpc::kMaxMetadataBytes) {
    response.metadata = kWhole + *text;
    return response;
  }
  response.metadata = kWholeInPayload;
  response.payload = memory::Payload(memory::Bytes{
      reinterpret_cast<const uint8_t*>(text->data()), text->size(), text});
  return response;
}

bool MayBeLent(const memory::Payload& payload) {
  return payload.pieces().size() == 1 && payload.size() >= kLeastLentBytes;
}

// Sets the tensor of a TensorResponse, which has no such function. The tensor
// that tensor() returns as const is not a constant object.
void SetTensor(Tensor tensor, TensorResponse* result) {
  const_cast<Tensor&>(result->tensor()) = std::move(tensor);
}

bool IsOnCpu(const TensorResponse& result) {
  return result.device()->attributes().device_type() == "CPU";
}

absl::Status CopyToDevice(RecvTensorResponse* meta,
                          const memory::Payload& payload,
                          TensorResponse* result) {
  meta->mutable_tensor()->set_tensor_content(Contiguous(payload));
  return result->InitFrom(meta);
}

// Returns true if `bytes` bytes fit into the shape. Divides, because a product
// of the peer's numbers could overflow.
bool FitsInto(uint64_t bytes, const TensorShape& shape,
              ::tensorflow::DataType dtype) {
  const auto element = static_cast<uint64_t>(::tensorflow::DataTypeSize(dtype));
  return bytes % element == 0 &&
         bytes / element == static_cast<uint64_t>(shape.num_elements());
}

absl::Status CopyToHost(const RecvTensorResponse& meta,
                        const memory::Payload& payload,
                        TensorResponse* result) {
  result->InitPartial(meta, ::tensorflow::AllocationAttributes());
  if (payload.size() > 0 && !result->tensor().IsInitialized()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no memory for a tensor of ", payload.size(), " bytes"));
  }
  const auto data = result->tensor().tensor_data();
  payload.CopyTo(reinterpret_cast<uint8_t*>(const_cast<char*>(data.data())));
  return absl::OkStatus();
}

absl::Status DecodeBytes(RecvTensorResponse* meta,
                         const memory::Payload& payload, bool may_lend,
                         TensorResponse* result) {
  const ::tensorflow::DataType dtype = meta->tensor().dtype();
  TensorShape shape;
  if (!::tensorflow::DataTypeCanUseMemcpy(dtype) ||
      !TensorShape::BuildTensorShape(meta->tensor().tensor_shape(), &shape)
           .ok() ||
      !FitsInto(payload.size(), shape, dtype)) {
    return Malformed();
  }
  if (!IsOnCpu(*result)) return CopyToDevice(meta, payload, result);
  if (may_lend && MayBeLent(payload)) {
    absl::optional<Tensor> lent =
        LentTensor(dtype, shape, payload.pieces().front());
    if (lent.has_value()) {
      // Removes the dimensions. The removal allocates almost nothing, and keeps
      // the other fields of the peer's message.
      meta->mutable_tensor()->mutable_tensor_shape()->clear_dim();
      result->InitPartial(*meta, ::tensorflow::AllocationAttributes());
      SetTensor(*std::move(lent), result);
      return absl::OkStatus();
    }
  }
  return CopyToHost(*meta, payload, result);
}

// Returns true if the content has at least one byte per element, like the
// output of EncodeTensor(). TensorFlow allocates all elements of a shape, and
// fills missing elements with the last value.
bool HasContentForAll(const ::tensorflow::TensorProto& proto) {
  TensorShape shape;
  return TensorShape::BuildTensorShape(proto.tensor_shape(), &shape).ok() &&
         static_cast<uint64_t>(shape.num_elements()) <=
             proto.tensor_content().size();
}

}  // namespace

memory::Bytes BytesOf(const Tensor& tensor) {
  auto owner = std::make_shared<const Tensor>(tensor);
  const auto data = owner->tensor_data();
  return memory::Bytes{reinterpret_cast<const uint8_t*>(data.data()),
                       data.size(), owner};
}

size_t EncodingWork(const Tensor& tensor) {
  return ::tensorflow::DataTypeCanUseMemcpy(tensor.dtype())
             ? 0
             : kCopiesPerParsed * tensor.TotalBytes();
}

size_t DecodingWork(const rpc::Response& response) {
  if (response.metadata.empty()) return 0;
  switch (response.metadata.front()) {
    case kBytes:
      return MayBeLent(response.payload) ? 0 : response.payload.size();
    case kBytesToCopy:
      return response.payload.size();
    default:
      return kCopiesPerParsed * response.payload.size();
  }
}

absl::StatusOr<rpc::Response> EncodeTensor(const Tensor& tensor, bool is_dead,
                                           bool may_change) {
  RecvTensorResponse meta;
  meta.set_is_dead(is_dead);
  meta.set_send_start_micros(
      static_cast<int64_t>(::tensorflow::Env::Default()->NowMicros()));
  if (!::tensorflow::DataTypeCanUseMemcpy(tensor.dtype())) {
    if (tensor.TotalBytes() > kMostWholeBytes) return TooLarge();
    tensor.AsProtoTensorContent(meta.mutable_tensor());
    return EncodeWhole(meta);
  }
  rpc::Response response;
  meta.mutable_tensor()->set_dtype(tensor.dtype());
  tensor.shape().AsProto(meta.mutable_tensor()->mutable_tensor_shape());
  response.metadata =
      (may_change ? kBytesToCopy : kBytes) + meta.SerializeAsString();
  if (tensor.TotalBytes() > 0) {
    response.payload = memory::Payload(BytesOf(tensor));
  }
  return response;
}

absl::Status DecodeTensor(const rpc::Response& response,
                          TensorResponse* result) {
  if (response.metadata.empty()) return Malformed();
  const char form = response.metadata.front();
  RecvTensorResponse meta;
  const bool parsed = form == kWholeInPayload
                          ? meta.ParseFromString(Contiguous(response.payload))
                          : meta.ParseFromString(response.metadata.substr(1));
  if (!parsed) return Malformed();
  switch (form) {
    case kBytes:
    case kBytesToCopy:
      return DecodeBytes(&meta, response.payload, form == kBytes, result);
    case kWhole:
    case kWholeInPayload:
      if (!HasContentForAll(meta.tensor())) return Malformed();
      // Fails for a variant that this process cannot decode. The stock protocol
      // grpc also returns INTERNAL for this.
      return result->InitFrom(&meta).ok() ? absl::OkStatus() : Malformed();
    default:
      return Malformed();
  }
}

}  // namespace tensorflow
}  // namespace penstock
