// Tests the allocator of a tensor's memory.

#include "tensor_service/allocator.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "tensor_service/codec.h"
#include "tensor_service/pool_allocator.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {
namespace {

class Counting final : public Allocator {
 public:
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(size_t bytes) override {
    ++count_;
    return HeapAllocator()->Allocate(bytes);
  }
  // Returns the number of allocations since the last call of this function.
  int count() { return std::exchange(count_, 0); }

 private:
  int count_ = 0;
};

// A fixture that restores the default allocator, because it belongs to the
// process.
class DefaultAllocatorTest : public testing::Test {
 protected:
  DefaultAllocatorTest() { SetDefaultAllocator(&counting_); }
  ~DefaultAllocatorTest() override { SetDefaultAllocator(nullptr); }

  Counting counting_;
};

TEST_F(DefaultAllocatorTest, NullIsTheHeap) {
  EXPECT_EQ(DefaultAllocator(), &counting_);
  SetDefaultAllocator(nullptr);
  EXPECT_EQ(DefaultAllocator(), HeapAllocator());
}

TEST_F(DefaultAllocatorTest, NewTensorsUseIt) {
  EXPECT_TRUE(Tensor::Allocate(DType::kF32, {2}).ok());
  EXPECT_EQ(counting_.count(), 1);
  const Tensor tensor = *Tensor::Of<float>({2}, {1, 2});
  EXPECT_EQ(counting_.count(), 1);
  EXPECT_EQ(tensor.Copy()->bytes(), tensor.bytes());
  EXPECT_EQ(counting_.count(), 1);
}

TEST_F(DefaultAllocatorTest, CopyForWritingUsesIt) {
  Tensor tensor = *Tensor::Of<float>({2}, {1, 2});
  EXPECT_EQ(counting_.count(), 1);
  const Tensor other = tensor;
  EXPECT_TRUE(tensor.mutable_flat<float>().ok());
  EXPECT_EQ(counting_.count(), 1);
}

TEST_F(DefaultAllocatorTest, CallerMayChooseAnother) {
  Counting chosen;
  const Tensor tensor = *Tensor::Allocate(DType::kF32, {2}, &chosen);
  EXPECT_EQ(chosen.count(), 1);
  EXPECT_TRUE(tensor.Copy(&chosen).ok());
  EXPECT_EQ(chosen.count(), 1);
  EXPECT_EQ(counting_.count(), 0);
}

TEST_F(DefaultAllocatorTest, CopiesToReadOrToKeepAreOnTheHeap) {
  static char memory[9] = {};
  auto part = Buffer::Wrap(memory + 1, 8, /*writable=*/false, nullptr);
  EXPECT_TRUE(Tensor::FromBuffer(DType::kF32, {2}, part)->Aligned().ok());
  auto of_more = Buffer::FromSlice(grpc::Slice(std::string(100, 'x')), 1000);
  EXPECT_TRUE(Tensor::FromBuffer(DType::kInt8, {100}, of_more)->Compact().ok());
  EXPECT_EQ(counting_.count(), 0);
}

TEST_F(DefaultAllocatorTest, DecodeCopiesToTheHeap) {
  Bundle bundle;
  bundle.tensors.push_back(
      {"x", *Tensor::Of<double>({500}, std::vector<double>(500, 1))});
  EXPECT_EQ(counting_.count(), 1);
  grpc::Slice whole;
  ASSERT_TRUE(Encode(bundle)->DumpToSingleSlice(&whole).ok());
  const grpc::Slice halves[] = {whole.sub(0, 2000),
                                whole.sub(2000, whole.size())};
  EXPECT_TRUE(Decode(grpc::ByteBuffer(halves, 2)).ok());
  EXPECT_EQ(counting_.count(), 0);
}

// A pool that counts its use, with a limit of 1 MiB.
class FakePool {
 public:
  class Share {
   public:
    explicit operator bool() const { return memory_ != nullptr; }
    uint8_t* data() const {
      return reinterpret_cast<uint8_t*>(memory_->mutable_data());
    }
    std::shared_ptr<Buffer> memory_;
  };

  static Share Allocate(size_t bytes) {
    if (bytes > 1 << 20) return Share();
    ++in_use;
    auto* under = new std::shared_ptr<Buffer>(*Buffer::Allocate(bytes));
    return Share{Buffer::Wrap((*under)->mutable_data(), bytes, true, [under] {
      delete under;
      --in_use;
    })};
  }

  static int in_use;
};
int FakePool::in_use = 0;

TEST(PoolAllocatorTest, PoolHasWhatIsWorthIt) {
  Allocator* const pool = PoolAllocator<FakePool>();
  EXPECT_EQ(pool, PoolAllocator<FakePool>());
  {
    const auto small = pool->Allocate(kMinPooledBytes - 1);
    const auto empty = pool->Allocate(0);
    ASSERT_TRUE(small.ok() && empty.ok());
    EXPECT_NE((*empty)->data(), nullptr);
    EXPECT_EQ(FakePool::in_use, 0);
    const auto large = pool->Allocate(kMinPooledBytes);
    ASSERT_TRUE(large.ok());
    EXPECT_TRUE((*large)->writable());
    EXPECT_EQ((*large)->size(), kMinPooledBytes);
    EXPECT_EQ((*large)->held(), kMinPooledBytes);
    EXPECT_EQ(FakePool::in_use, 1);
  }
  EXPECT_EQ(FakePool::in_use, 0);
}

TEST(PoolAllocatorTest, PoolThatHasNoneIsAnError) {
  const auto none = PoolAllocator<FakePool>()->Allocate((1 << 20) + 1);
  EXPECT_EQ(none.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(PoolAllocatorTest, MemoryGoesBackAfterTheMessage) {
  Bundle bundle;
  bundle.tensors.push_back(
      {"x", *Tensor::Allocate(DType::kF32, {5000}, PoolAllocator<FakePool>())});
  {
    const auto message = Encode(bundle);
    ASSERT_TRUE(message.ok());
    bundle.tensors.clear();
    EXPECT_EQ(FakePool::in_use, 1);
  }
  EXPECT_EQ(FakePool::in_use, 0);
}

TEST(PoolAllocatorTest, WritingDuringAMessageLeavesTheMessage) {
  Bundle bundle;
  bundle.tensors.push_back(
      {"x", *Tensor::Allocate(DType::kF32, {5000}, PoolAllocator<FakePool>())});
  Tensor& tensor = bundle.tensors[0].tensor;
  (*tensor.mutable_flat<float>())[0] = 1;
  {
    const auto message = Encode(bundle);
    ASSERT_TRUE(message.ok());
    (*tensor.mutable_flat<float>())[0] = 2;
    EXPECT_EQ(
        (*Decode(*message)->tensors[0].tensor.Aligned()->flat<float>())[0], 1);
  }
  const char* const alone = tensor.bytes().data();
  (*tensor.mutable_flat<float>())[0] = 3;
  EXPECT_EQ(tensor.bytes().data(), alone);
}

}  // namespace
}  // namespace penstock::tensor
