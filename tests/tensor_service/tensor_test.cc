#include "tensor_service/tensor.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <limits>

namespace penstock::tensor {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

TEST(ByteSizeTest, ScalarHasOneElement) {
  EXPECT_EQ(*ByteSize(DType::kF64, {}), 8u);
}

TEST(ByteSizeTest, OverflowIsRefused) {
  EXPECT_EQ(ByteSize(DType::kF32, {kHuge / 2, 3}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(ByteSize(DType::kF64, {kHuge / 4}).ok());
}

TEST(ByteSizeTest, ZeroTimesHugeIsZero) {
  EXPECT_EQ(*ByteSize(DType::kF32, {kHuge, kHuge, 0}), 0u);
}

TEST(ByteSizeTest, NegativeDimensionIsRefused) {
  EXPECT_FALSE(ByteSize(DType::kF32, {2, -1}).ok());
  EXPECT_FALSE(ByteSize(DType::kF32, {0, -1}).ok());
}

TEST(ByteSizeTest, RankIsLimited) {
  EXPECT_TRUE(ByteSize(DType::kInt8, Shape(kMaxRank, 1)).ok());
  EXPECT_FALSE(ByteSize(DType::kInt8, Shape(kMaxRank + 1, 1)).ok());
}

TEST(TensorTest, SizeMustMatchShape) {
  EXPECT_FALSE(
      Tensor::FromSlice(DType::kF32, {2}, grpc::Slice("1234567")).ok());
  EXPECT_TRUE(
      Tensor::FromSlice(DType::kF32, {2}, grpc::Slice("12345678")).ok());
}

TEST(TensorTest, AnyByteIsABool) {
  auto tensor = Tensor::FromSlice(DType::kBool, {2}, grpc::Slice("\xff\x02"));
  ASSERT_TRUE(tensor.ok());
  EXPECT_TRUE(static_cast<bool>((*tensor->flat<Bool>())[0]));
}

TEST(TensorTest, FlatChecksTheType) {
  Tensor tensor = *Tensor::Of<float>({2}, {1, 2});
  EXPECT_EQ((*tensor.flat<float>())[1], 2);
  EXPECT_FALSE(tensor.flat<double>().ok());
}

TEST(TensorTest, WritingDoesNotChangeACopy) {
  Tensor tensor = *Tensor::Of<float>({2}, {1, 2});
  Tensor copy = tensor;
  (*tensor.mutable_flat<float>())[0] = 9;
  EXPECT_EQ((*copy.flat<float>())[0], 1);
  EXPECT_EQ((*tensor.flat<float>())[0], 9);
}

TEST(TensorTest, WritingAloneCopiesNothing) {
  Tensor tensor = *Tensor::Of<float>({2}, {1, 2});
  const char* before = tensor.bytes().data();
  ASSERT_TRUE(tensor.mutable_flat<float>().ok());
  EXPECT_EQ(tensor.bytes().data(), before);
}

// Tests a forked child. The memory may be shared memory that the parent sends.
TEST(TensorTest, WritingInAForkedChildCopiesFirst) {
  Tensor tensor = *Tensor::Allocate(DType::kInt32, {2});
  const absl::Span<int32_t> elements = *tensor.mutable_flat<int32_t>();
  elements[0] = elements[1] = 1;
  const pid_t child = fork();
  if (child == 0) {
    const bool was_exclusive = tensor.IsExclusive();
    const absl::Span<int32_t> own = *tensor.mutable_flat<int32_t>();
    _exit(!was_exclusive && own.data() != elements.data() && own[1] == 1 &&
                  tensor.IsExclusive()
              ? 0
              : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(tensor.IsExclusive());
}

TEST(TensorTest, WritingToMemoryInFlightCopiesFirst) {
  Tensor tensor = *Tensor::Of<float>({2}, {1, 2});
  grpc::Slice in_flight = SliceOf(tensor.buffer());
  (*tensor.mutable_flat<float>())[0] = 9;
  EXPECT_EQ(reinterpret_cast<const float*>(in_flight.begin())[0], 1);
}

TEST(TensorTest, UnalignedAccessIsRefusedUntilAligned) {
  alignas(8) static char memory[16] = {};
  auto buffer = Buffer::Wrap(memory + 1, 8, /*writable=*/true, nullptr);
  auto tensor = Tensor::FromBuffer(DType::kF32, {2}, buffer);
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->flat<float>().status().code(),
            absl::StatusCode::kFailedPrecondition);
  auto aligned = tensor->Aligned();
  ASSERT_TRUE(aligned.ok());
  EXPECT_TRUE(aligned->flat<float>().ok());
}

TEST(TensorTest, WrappedMemoryIsReleasedOnceAfterTheLastHolder) {
  static char memory[4];
  int released = 0;
  {
    grpc::Slice slice;
    {
      auto buffer = Buffer::Wrap(memory, 4, true, [&] { ++released; });
      slice = SliceOf(buffer);
    }
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
}

TEST(TensorTest, EmptyTensorIsWritable) {
  Tensor tensor;
  EXPECT_EQ(tensor.num_elements(), 0u);
  EXPECT_TRUE(tensor.mutable_flat<float>().ok());
}

}  // namespace
}  // namespace penstock::tensor
