// Tests tensorflow::DecodeTensor of the plugin, for a CPU.
//
// The input is u16 length of the payload, the payload, and the metadata. Needs
// an installed TensorFlow, so only tools/fuzz builds this.

#include <memory>
#include <utility>

#include "frameworks/tensorflow/tensor_message.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/protobuf/worker.pb.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace penstock {
namespace fuzz {
namespace {

using ::tensorflow::DataType;
using ::tensorflow::Tensor;
using ::tensorflow::TensorShape;

// The memory per byte of an answer, for a variant or a resource.
constexpr uint64_t kMostPerByte = 512;
constexpr uint64_t kBudget = 64 * 1024;

class Cpu : public ::tensorflow::DeviceBase {
 public:
  Cpu() : DeviceBase(::tensorflow::Env::Default()) {
    attributes_.set_device_type("CPU");
  }
  const ::tensorflow::DeviceAttributes& attributes() const override {
    return attributes_;
  }
  ::tensorflow::Allocator* GetAllocator(
      ::tensorflow::AllocatorAttributes) override {
    return ::tensorflow::cpu_allocator();
  }

 private:
  ::tensorflow::DeviceAttributes attributes_;
};

std::string Flat(const memory::Payload& payload) {
  std::string text(payload.size(), '\0');
  payload.CopyTo(reinterpret_cast<uint8_t*>(&text[0]));
  return text;
}

std::string InputOf(const std::string& metadata, const std::string& payload) {
  return Number(static_cast<uint16_t>(payload.size())) + payload + metadata;
}

std::string SeedOf(const Tensor& tensor, bool may_change = false) {
  const rpc::Response response = *penstock::tensorflow::EncodeTensor(
      tensor, /*is_dead=*/false, may_change);
  return InputOf(response.metadata, Flat(response.payload));
}

// Returns a shape with many elements, and no contents.
std::string EmptyOf(DataType dtype, int64_t elements) {
  ::tensorflow::RecvTensorResponse meta;
  meta.mutable_tensor()->set_dtype(dtype);
  meta.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(elements);
  return InputOf("w" + meta.SerializeAsString(), "");
}

}  // namespace

std::vector<std::string> Seeds() {
  Tensor floats(::tensorflow::DT_FLOAT, TensorShape({20, 60}));
  floats.flat<float>().setConstant(1);
  Tensor strings(::tensorflow::DT_STRING, TensorShape({3}));
  strings.flat<::tensorflow::tstring>()(1) = "text";
  return {SeedOf(floats),
          SeedOf(floats, /*may_change=*/true),
          SeedOf(strings),
          EmptyOf(::tensorflow::DT_STRING, 1 << 20),
          EmptyOf(::tensorflow::DT_FLOAT, 1 << 24),
          EmptyOf(::tensorflow::DT_INT64, int64_t{1} << 62)};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace fuzz = penstock::fuzz;
  static auto* const cpu = new fuzz::Cpu;
  fuzz::Input input(data, size);
  penstock::rpc::Response response;
  const auto payload = std::make_shared<const std::string>(
      fuzz::AsText(input.Bytes(input.Number<uint16_t>())));
  response.payload = penstock::memory::Payload(
      {fuzz::AsBytes(*payload).data(), payload->size(), payload});
  response.metadata = std::string(fuzz::AsText(input.Rest()));
  ::tensorflow::TensorResponse result;
  result.InitAlloc(cpu, ::tensorflow::AllocatorAttributes());
  if (!penstock::tensorflow::DecodeTensor(response, &result).ok()) return 0;
  fuzz::Require(
      result.tensor().IsInitialized() || result.tensor().NumElements() == 0,
      "what was decoded has its elements");
  fuzz::Require(
      result.tensor().TotalBytes() <= fuzz::kBudget + fuzz::kMostPerByte * size,
      "a tensor is in proportion to its answer");
  return 0;
}
