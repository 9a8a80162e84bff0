// Tests tensor::Decode in comparison with protobuf's generated code.

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/codec.h"
#include "tensor_service/tensor.h"
#include "tensor_service/tensor.pb.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace penstock {
namespace fuzz {
namespace {

// Returns a message of `bytes` in slices of `cut` bytes, so that fields may
// span slices.
grpc::ByteBuffer InSlices(const std::string& bytes, size_t cut) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += cut) {
    slices.emplace_back(bytes.substr(at, cut));
  }
  if (slices.empty()) slices.emplace_back();
  return grpc::ByteBuffer(slices.data(), slices.size());
}

bool IsSame(const tensor::NamedTensor& ours,
            const tensor::v1::NamedTensor& generated) {
  const tensor::v1::Tensor& tensor = generated.tensor();
  return ours.name == generated.name() &&
         static_cast<int>(ours.tensor.dtype()) == tensor.dtype() &&
         std::equal(ours.tensor.shape().begin(), ours.tensor.shape().end(),
                    tensor.shape().begin(), tensor.shape().end()) &&
         ours.tensor.bytes() == tensor.data();
}

bool IsSame(const tensor::Bundle& ours, const tensor::v1::Bundle& generated) {
  return std::equal(ours.tensors.begin(), ours.tensors.end(),
                    generated.tensors().begin(), generated.tensors().end(),
                    [](const auto& a, const auto& b) { return IsSame(a, b); });
}

std::string Flat(const grpc::ByteBuffer& message) {
  grpc::Slice slice;
  Require(message.DumpToSingleSlice(&slice).ok(), "our own message is whole");
  return std::string(reinterpret_cast<const char*>(slice.begin()),
                     slice.size());
}

tensor::NamedTensor Named(const char* name, tensor::DType dtype,
                          tensor::Shape shape) {
  tensor::Tensor tensor = *tensor::Tensor::Allocate(dtype, std::move(shape));
  if (tensor.byte_size() > 0) {
    memset(tensor.buffer()->mutable_data(), 7, tensor.byte_size());
  }
  return {name, std::move(tensor)};
}

}  // namespace

std::vector<std::string> Seeds() {
  using tensor::DType;
  const tensor::Bundle small = {{Named("a/b", DType::kF64, {2, 3}),
                                 Named("scalar", DType::kInt8, {}),
                                 Named("\xc3\xa9", DType::kF16, {0, 5})}};
  const tensor::Bundle large = {{Named("weights", DType::kF32, {20, 33}),
                                 Named("odd", DType::kBool, {1, 1027})}};
  const std::string first(1, '\x07');
  return {first + Flat(*tensor::Encode(small)),
          first + Flat(*tensor::Encode(large, "header")),
          first + Flat(*tensor::Encode(small, "", /*checksums=*/true)),
          first + Flat(*tensor::Encode({}, "header")), first};
}

}  // namespace fuzz
}  // namespace penstock

// Decodes the input in slices whose length is the first byte.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock;
  if (size == 0) return 0;
  const std::string bytes(fuzz::AsText({data + 1, size - 1}));
  const size_t cut = std::max<size_t>(1, data[0]);
  const auto ours = tensor::Decode(fuzz::InSlices(bytes, cut));
  const auto whole = tensor::Decode(fuzz::InSlices(bytes, bytes.size() + 1));
  fuzz::Require(ours.ok() == whole.ok(), "cuts change nothing");
  if (!ours.ok()) return 0;
  tensor::v1::Bundle generated;
  fuzz::Require(generated.ParseFromString(bytes),
                "what we read, generated code reads");
  fuzz::Require(fuzz::IsSame(*ours, generated), "it reads the same");
  fuzz::Require(fuzz::IsSame(*whole, generated), "it reads the same, uncut");
  const auto again = tensor::Encode(*ours);
  fuzz::Require(again.ok(), "what was read can be written");
  tensor::v1::Bundle second;
  fuzz::Require(
      second.ParseFromString(fuzz::Flat(*again)) && fuzz::IsSame(*ours, second),
      "generated code reads the same of what we write");
  return 0;
}
