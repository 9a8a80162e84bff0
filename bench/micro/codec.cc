// Measures the codec of tensors: encoding and decoding a step's small
// variables.

#include "tensor_service/codec.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/tensor.h"
#include "tensor_service/tensor.pb.h"

namespace penstock {
namespace bench {
namespace {

// The number of tensors in a message. The time per tensor is a thousandth of
// the measured time.
constexpr int kTensors = 1000;

tensor::Bundle SmallVariables(int64_t bytes) {
  tensor::Bundle bundle;
  for (int i = 0; i < kTensors; ++i) {
    bundle.tensors.push_back(
        {absl::StrCat("layer", i, "/bias"),
         *tensor::Tensor::Allocate(tensor::DType::kF32, {bytes / 4})});
  }
  return bundle;
}

void EncodeTensors(benchmark::State& state) {
  const tensor::Bundle bundle = SmallVariables(state.range(0));
  for (auto _ : state) {
    auto message = tensor::Encode(bundle);
    benchmark::DoNotOptimize(message);
  }
  state.SetItemsProcessed(state.iterations() * kTensors);
}
BENCHMARK(EncodeTensors)->Arg(256)->Arg(4096);

void DecodeTensors(benchmark::State& state) {
  const grpc::ByteBuffer message =
      *tensor::Encode(SmallVariables(state.range(0)));
  for (auto _ : state) {
    auto bundle = tensor::Decode(message);
    benchmark::DoNotOptimize(bundle);
  }
  state.SetItemsProcessed(state.iterations() * kTensors);
}
BENCHMARK(DecodeTensors)->Arg(256)->Arg(4096);

// Returns the same bundle as a message of protobuf's generated code, for
// comparison.
tensor::v1::Bundle GeneratedVariables(const tensor::Bundle& bundle) {
  tensor::v1::Bundle generated;
  for (const tensor::NamedTensor& named : bundle.tensors) {
    tensor::v1::NamedTensor* entry = generated.add_tensors();
    entry->set_name(named.name);
    entry->mutable_tensor()->set_dtype(tensor::v1::DTYPE_F32);
    for (int64_t dimension : named.tensor.shape()) {
      entry->mutable_tensor()->add_shape(dimension);
    }
    entry->mutable_tensor()->set_data(std::string(named.tensor.bytes()));
  }
  return generated;
}

void EncodeGenerated(benchmark::State& state) {
  const tensor::v1::Bundle bundle =
      GeneratedVariables(SmallVariables(state.range(0)));
  for (auto _ : state) {
    std::string message = bundle.SerializeAsString();
    benchmark::DoNotOptimize(message);
  }
  state.SetItemsProcessed(state.iterations() * kTensors);
}
BENCHMARK(EncodeGenerated)->Arg(256);

void DecodeGenerated(benchmark::State& state) {
  const std::string message =
      GeneratedVariables(SmallVariables(state.range(0))).SerializeAsString();
  for (auto _ : state) {
    tensor::v1::Bundle bundle;
    benchmark::DoNotOptimize(bundle.ParseFromString(message));
  }
  state.SetItemsProcessed(state.iterations() * kTensors);
}
BENCHMARK(DecodeGenerated)->Arg(256);

}  // namespace
}  // namespace bench
}  // namespace penstock
