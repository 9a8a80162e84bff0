// Tests the plugin's cost of an answer with a tensor, for header numbers of any
// size.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "frameworks/tensorflow/tensor_message.h"
#include "gtest/gtest.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/protobuf/worker.pb.h"
#include "tests/fuzz/bounds.h"
#include "transport/rpc/call.h"

namespace penstock {
namespace fuzz {
namespace {

using ::tensorflow::RecvTensorResponse;
using ::tensorflow::TensorResponse;

constexpr uint64_t kBudget = 64 * 1024;
// Limits the memory per byte of an answer. A byte may stand for a variant or a
// resource.
constexpr uint64_t kMostPerByte = 512;
// Limits the elements that a shape names and a payload holds.
constexpr int kElementBits = 15;

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

// Answers with independent random numbers. Many answers can be decoded.
class Answers {
 public:
  explicit Answers(Random* random) : random_(random) {}

  rpc::Response Next() {
    const uint64_t elements = random_->Number(kElementBits);
    RecvTensorResponse meta;
    Describe(elements, &meta);
    const std::string content = Content(elements, meta.tensor().dtype());
    rpc::Response answer;
    const char form = Form();
    if (form == 'w' || form == 'p' || random_->OneIn(16)) {
      meta.mutable_tensor()->set_tensor_content(content);
    } else {
      answer.payload = PayloadOf(content);
    }
    std::string header = meta.SerializeAsString();
    if (random_->OneIn(16)) Damage(&header);
    if (form == 'p') {
      answer.payload = PayloadOf(header);
      header.clear();
    }
    answer.metadata = form + header;
    return answer;
  }

 private:
  char Form() {
    constexpr char kForms[] = {'b', 'c', 'w', 'p'};
    return random_->OneIn(32) ? static_cast<char>(random_->Number(8))
                              : kForms[random_->Below(4)];
  }

  void Describe(uint64_t elements, RecvTensorResponse* meta) {
    auto* const tensor = meta->mutable_tensor();
    tensor->set_dtype(static_cast<::tensorflow::DataType>(
        random_->OneIn(16) ? random_->Number(31) : random_->Below(32)));
    auto* const shape = tensor->mutable_tensor_shape();
    if (random_->OneIn(2)) {
      shape->add_dim()->set_size(static_cast<int64_t>(elements));
    } else {
      for (uint64_t left = random_->Number(9); left > 0; --left) {
        shape->add_dim()->set_size(static_cast<int64_t>(random_->Number(64)));
      }
    }
    if (random_->OneIn(16)) shape->set_unknown_rank(true);
    if (random_->OneIn(8)) AddValues(tensor);
    if (random_->OneIn(8)) {
      tensor->set_version_number(static_cast<int32_t>(random_->Number(32)));
      meta->set_send_start_micros(static_cast<int64_t>(random_->Number(64)));
      meta->set_require_ack(true);
    }
    meta->set_is_dead(random_->OneIn(8));
  }

  void AddValues(::tensorflow::TensorProto* tensor) {
    for (uint64_t left = random_->Number(4); left > 0; --left) {
      tensor->add_float_val(1);
      tensor->add_int_val(2);
      tensor->add_string_val(random_->Text(100));
      tensor->add_resource_handle_val()->set_name("r");
      tensor->add_variant_val()->set_type_name("unknown");
    }
  }

  // Returns contents of a tensor, usually with as many bytes as the elements
  // need. Contents of strings begin with the lengths.
  std::string Content(uint64_t elements, ::tensorflow::DataType dtype) {
    if (dtype == ::tensorflow::DT_STRING && random_->OneIn(2)) {
      std::string content;
      for (uint64_t i = 0; i < elements; ++i) {
        content.push_back(static_cast<char>(
            random_->OneIn(64) ? random_->Number(8) : random_->Below(4)));
      }
      return content + std::string(2 * elements, 's');
    }
    const auto size =
        static_cast<uint64_t>(std::max(1, ::tensorflow::DataTypeSize(dtype)));
    return std::string(
        random_->OneIn(8) ? random_->Number(kElementBits) : elements * size,
        random_->OneIn(2) ? '\0' : '\x7f');
  }

  void Damage(std::string* header) {
    if (header->empty()) return;
    for (uint64_t left = 1 + random_->Number(3); left > 0; --left) {
      (*header)[random_->Below(header->size())] =
          static_cast<char>(random_->Number(8));
    }
    if (random_->OneIn(2)) header->resize(random_->Below(header->size()));
  }

  static memory::Payload PayloadOf(const std::string& text) {
    if (text.empty()) return memory::Payload();
    auto owner = std::make_shared<const std::string>(text);
    return memory::Payload(memory::Bytes{
        reinterpret_cast<const uint8_t*>(owner->data()), owner->size(), owner});
  }

  Random* const random_;
};

TEST(TensorFlowBounds, EachAnswerCostsInProportionToItsBytes) {
  static auto* const cpu = new Cpu;
  Random random;
  Answers answers(&random);
  uint64_t inputs = 0;
  uint64_t decoded = 0;
  for (; random.GoesOn() && !HasFailure(); ++inputs) {
    const rpc::Response answer = answers.Next();
    const size_t bytes = answer.metadata.size() + answer.payload.size();
    const uint64_t budget = kBudget + kMostPerByte * bytes;
    const Cost cost;
    TensorResponse result;
    result.InitAlloc(cpu, ::tensorflow::AllocatorAttributes());
    const bool is_ok = penstock::tensorflow::DecodeTensor(answer, &result).ok();
    ASSERT_TRUE(cost.IsWithin(bytes, budget))
        << testing::PrintToString(answer.metadata.substr(0, 200));
    if (!is_ok) continue;
    ++decoded;
    ASSERT_TRUE(result.tensor().IsInitialized() ||
                result.tensor().NumElements() == 0);
    ASSERT_LE(result.tensor().TotalBytes(), budget);
  }
  std::printf("%d inputs, %d of them tensors\n", static_cast<int>(inputs),
              static_cast<int>(decoded));
  EXPECT_GT(decoded, inputs / 100) << "the consumer is tried";
}

}  // namespace
}  // namespace fuzz
}  // namespace penstock
