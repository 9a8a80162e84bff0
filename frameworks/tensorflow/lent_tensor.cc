#include "frameworks/tensorflow/lent_tensor.h"

#include <atomic>
#include <utility>

#include "tensorflow/core/framework/allocation_description.pb.h"

namespace penstock {
namespace tensorflow {
namespace {

std::atomic<uint64_t> max_held{0};
std::atomic<uint64_t> held{0};

class LentBuffer final : public ::tensorflow::TensorBuffer {
 public:
  // Makes a buffer from bytes that are already counted in `held`.
  explicit LentBuffer(const memory::Bytes& bytes)
      : TensorBuffer(const_cast<uint8_t*>(bytes.data)), bytes_(bytes) {}
  ~LentBuffer() override {
    held.fetch_sub(bytes_.size, std::memory_order_relaxed);
  }

  size_t size() const override { return bytes_.size; }
  TensorBuffer* root_buffer() override { return this; }
  void FillAllocationDescription(
      ::tensorflow::AllocationDescription* description) const override {
    description->set_requested_bytes(static_cast<int64_t>(bytes_.size));
    description->set_allocator_name("penstock");
  }
  // Returns false, so that TensorFlow does not write to the memory: variables
  // copy the memory before an update.
  bool OwnsMemory() const override { return false; }

 private:
  const memory::Bytes bytes_;
};

bool Charge(uint64_t bytes) {
  if (held.fetch_add(bytes, std::memory_order_relaxed) + bytes <=
      max_held.load(std::memory_order_relaxed)) {
    return true;
  }
  held.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

}  // namespace

absl::optional<::tensorflow::Tensor> LentTensor(
    ::tensorflow::DataType dtype, const ::tensorflow::TensorShape& shape,
    const memory::Bytes& bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data) % EIGEN_MAX_ALIGN_BYTES != 0 ||
      !Charge(bytes.size)) {
    return absl::nullopt;
  }
  auto* buffer = new LentBuffer(bytes);
  ::tensorflow::Tensor tensor(dtype, shape, buffer);
  buffer->Unref();  // the tensor has its own reference
  return tensor;
}

void SetMaxHeldBytes(uint64_t bytes) { max_held = bytes; }

uint64_t HeldBytes() { return held; }

}  // namespace tensorflow
}  // namespace penstock
