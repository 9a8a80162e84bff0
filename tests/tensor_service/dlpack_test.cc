#include "tensor_service/dlpack.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"

namespace penstock::tensor {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

// A producer of int32 tensors over its own memory, which counts the calls of
// the deleter.
class Producer {
 public:
  Producer(std::vector<int64_t> shape, std::vector<int64_t> strides)
      : shape_(std::move(shape)), strides_(std::move(strides)), values_(64) {
    std::iota(values_.begin(), values_.end(), 0);
    managed_.manager_ctx = this;
    managed_.deleter = [](DLManagedTensor* self) {
      ++static_cast<Producer*>(self->manager_ctx)->deleted_;
    };
    tensor().data = values_.data();
    tensor().device = {kDLCPU, 0};
    tensor().ndim = static_cast<int>(shape_.size());
    tensor().dtype = {kDLInt, 32, 1};
    tensor().shape = shape_.data();
    tensor().strides = strides_.empty() ? nullptr : strides_.data();
  }

  DLManagedTensor* managed() { return &managed_; }
  DLTensor& tensor() { return managed_.dl_tensor; }
  int deleted() const { return deleted_; }
  const void* address(int index) const { return &values_[index]; }

 private:
  std::vector<int64_t> shape_;
  std::vector<int64_t> strides_;
  std::vector<int32_t> values_;
  DLManagedTensor managed_ = {};
  int deleted_ = 0;
};

std::vector<int32_t> ValuesOf(const Tensor& tensor) {
  auto values = tensor.flat<int32_t>();
  EXPECT_TRUE(values.ok()) << values.status();
  if (!values.ok()) return {};
  return std::vector<int32_t>(values->begin(), values->end());
}

// Expects that the import is refused with a reason that contains `word`, and
// that the producer still owns the tensor.
void ExpectRefused(Producer& producer, const std::string& word) {
  const absl::StatusOr<Tensor> tensor = FromDLPack(producer.managed());
  EXPECT_EQ(tensor.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StrContains(tensor.status().message(), word))
      << tensor.status();
  EXPECT_EQ(producer.deleted(), 0);
}

TEST(FromDLPackTest, RowMajorMemoryIsBorrowedAndGivenBackOnce) {
  for (const std::vector<int64_t>& strides :
       {std::vector<int64_t>{}, std::vector<int64_t>{3, 1}}) {
    Producer producer({2, 3}, strides);
    absl::StatusOr<Tensor> tensor = FromDLPack(producer.managed());
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(tensor->bytes().data(), producer.address(0));
    EXPECT_EQ(tensor->ToString(), "int32[2,3]");
    Tensor other = *tensor;
    *tensor = Tensor();
    EXPECT_EQ(producer.deleted(), 0);
    other = Tensor();
    EXPECT_EQ(producer.deleted(), 1);
  }
}

TEST(FromDLPackTest, StrideOfOneElementMeansNothing) {
  Producer producer({1, 3, 1}, {-99, 1, 1000});
  absl::StatusOr<Tensor> tensor = FromDLPack(producer.managed());
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(tensor->bytes().data(), producer.address(0));
}

TEST(FromDLPackTest, ByteOffsetIsAdded) {
  Producer producer({2}, {});
  producer.tensor().byte_offset = 12;
  absl::StatusOr<Tensor> tensor = FromDLPack(producer.managed());
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(ValuesOf(*tensor), (std::vector<int32_t>{3, 4}));
}

TEST(FromDLPackTest, OtherLayoutsArePackedAndGivenBackAtOnce) {
  const struct {
    std::vector<int64_t> shape, strides;
    uint64_t byte_offset;
    std::vector<int32_t> values;
  } kCases[] = {
      {{2, 3}, {1, 2}, 0, {0, 2, 4, 1, 3, 5}},               // transposed
      {{3}, {2}, 0, {0, 2, 4}},                              // every second
      {{3}, {-1}, 8, {2, 1, 0}},                             // reversed
      {{2, 2}, {0, 1}, 0, {0, 1, 0, 1}},                     // broadcast
      {{2, 2, 2}, {8, 2, 1}, 0, {0, 1, 2, 3, 8, 9, 10, 11}}  // rows of a part
  };
  for (const auto& test : kCases) {
    Producer producer(test.shape, test.strides);
    producer.tensor().byte_offset = test.byte_offset;
    absl::StatusOr<Tensor> tensor = FromDLPack(producer.managed());
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ(ValuesOf(*tensor), test.values);
    EXPECT_EQ(producer.deleted(), 1);
  }
}

TEST(FromDLPackTest, PackingFailsWithoutMemoryAndTakesNothing) {
  class Empty final : public Allocator {
    absl::StatusOr<std::shared_ptr<Buffer>> Allocate(size_t) override {
      return absl::ResourceExhaustedError("none");
    }
  } allocator;
  Producer producer({3}, {2});
  EXPECT_EQ(FromDLPack(producer.managed(), &allocator).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(producer.deleted(), 0);
}

TEST(FromDLPackTest, BorrowedMemoryIsCopiedBeforeItIsWritten) {
  Producer producer({2}, {});
  absl::StatusOr<Tensor> tensor = FromDLPack(producer.managed());
  ASSERT_TRUE(tensor.ok());
  (*tensor->mutable_flat<int32_t>())[0] = 7;
  EXPECT_EQ(*static_cast<const int32_t*>(producer.address(0)), 0);
  EXPECT_EQ(producer.deleted(), 1);
}

TEST(FromDLPackTest, ScalarsAndEmptyTensorsAreTensors) {
  Producer scalar({}, {});
  scalar.tensor().shape = nullptr;
  absl::StatusOr<Tensor> tensor = FromDLPack(scalar.managed());
  ASSERT_TRUE(tensor.ok());
  EXPECT_EQ(ValuesOf(*tensor), std::vector<int32_t>{0});

  Producer empty({kHuge, 0, kHuge}, {kHuge, kHuge, -kHuge});
  empty.tensor().data = nullptr;
  tensor = FromDLPack(empty.managed());
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(tensor->num_elements(), 0u);
  EXPECT_EQ(tensor->shape(), (Shape{kHuge, 0, kHuge}));
}

TEST(FromDLPackTest, MissingDeleterIsNotCalled) {
  for (int64_t stride : {1, 2}) {
    Producer producer({2}, {stride});
    producer.managed()->deleter = nullptr;
    EXPECT_TRUE(FromDLPack(producer.managed()).ok());
  }
}

TEST(FromDLPackTest, MemoryOfOtherDevicesIsRefusedAndOfAPinnedHostIsNot) {
  Producer producer({2}, {});
  for (const DLDeviceType type : {kDLROCM, kDLVulkan, kDLMetal}) {
    producer.tensor().device = {type, 1};
    ExpectRefused(producer, ".cpu()");
  }
  producer.tensor().device = {kDLCUDAHost, 0};
  EXPECT_TRUE(FromDLPack(producer.managed()).ok());
}

TEST(FromDLPackTest, ElementsThatDTypeLacksAreRefused) {
  Producer producer({2}, {});
  for (DLDataType type :
       {DLDataType{kDLComplex, 64, 1}, DLDataType{kDLFloat, 32, 4},
        DLDataType{kDLUInt, 32, 1}, DLDataType{kDLInt, 4, 1},
        DLDataType{kDLFloat, 32, 0}, DLDataType{255, 255, 65535}}) {
    producer.tensor().dtype = type;
    ExpectRefused(producer, "convert it");
  }
}

TEST(FromDLPackTest, NonsenseIsRefused) {
  EXPECT_FALSE(FromDLPack(nullptr).ok());
  Producer rank(std::vector<int64_t>(kMaxRank + 1, 1), {});
  ExpectRefused(rank, "dimensions");
  rank.tensor().ndim = -1;
  ExpectRefused(rank, "dimensions");
  Producer no_shape({2}, {});
  no_shape.tensor().shape = nullptr;
  ExpectRefused(no_shape, "shape");
  Producer no_data({2}, {});
  no_data.tensor().data = nullptr;
  ExpectRefused(no_data, "null");
  Producer negative({2, -1}, {});
  ExpectRefused(negative, "negative");
  Producer overflow({kHuge, 3}, {});
  ExpectRefused(overflow, "overflows");
}

TEST(FromDLPackTest, PlacesOutsideOfTheAddressSpaceAreRefused) {
  for (int64_t stride : {kHuge, kHuge / 4, -kHuge, -kHuge / 4 - 2}) {
    Producer producer({2, 2}, {1, stride});
    ExpectRefused(producer, "lead out");
  }
  Producer both_ways({2, 2}, {kHuge / 8, -(kHuge / 8)});
  ExpectRefused(both_ways, "lead out");
  Producer producer({2}, {});
  producer.tensor().byte_offset = std::numeric_limits<uint64_t>::max();
  ExpectRefused(producer, "lead out");
}

TEST(ToDLPackTest, LendsTheMemoryUntilTheDeleterRuns) {
  const int32_t values[] = {1, 2, 3, 4, 5, 6};
  bool released = false;
  DLManagedTensor* lent = nullptr;
  {
    Tensor tensor = *Tensor::FromBuffer(
        DType::kInt32, {2, 3},
        Buffer::Wrap(const_cast<int32_t*>(values), sizeof(values),
                     /*writable=*/false, [&released] { released = true; }));
    lent = *ToDLPack(tensor);
  }
  EXPECT_EQ(lent->dl_tensor.data, values);
  EXPECT_EQ(lent->dl_tensor.device.device_type, kDLCPU);
  EXPECT_EQ(lent->dl_tensor.byte_offset, 0u);
  ASSERT_EQ(lent->dl_tensor.ndim, 2);
  EXPECT_EQ(lent->dl_tensor.shape[1], 3);
  EXPECT_EQ(lent->dl_tensor.strides[0], 3);
  EXPECT_EQ(lent->dl_tensor.strides[1], 1);
  EXPECT_FALSE(released);
  lent->deleter(lent);
  EXPECT_TRUE(released);
}

TEST(ToDLPackTest, LentMemoryIsNotWrittenTo) {
  Tensor tensor = *Tensor::Of<int32_t>({2}, {1, 2});
  DLManagedTensor* lent = *ToDLPack(tensor);
  (*tensor.mutable_flat<int32_t>())[0] = 7;
  EXPECT_EQ(static_cast<int32_t*>(lent->dl_tensor.data)[0], 1);
  lent->deleter(lent);
}

TEST(ToDLPackTest, EachElementTypeComesBack) {
  for (int number = 1; IsDType(number); ++number) {
    const auto dtype = static_cast<DType>(number);
    const Tensor tensor = *Tensor::Allocate(dtype, {3});
    absl::StatusOr<Tensor> back = FromDLPack(*ToDLPack(tensor));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->dtype(), dtype);
    EXPECT_EQ(back->bytes().data(), tensor.bytes().data());
  }
}

TEST(ToDLPackTest, ScalarsAndEmptyTensorsComeBack) {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{kHuge, 0, kHuge}}) {
    absl::StatusOr<Tensor> back =
        FromDLPack(*ToDLPack(*Tensor::Allocate(DType::kF64, shape)));
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->shape(), shape);
  }
  EXPECT_TRUE(FromDLPack(*ToDLPack(Tensor())).ok());
}

TEST(ToDLPackTest, UnalignedElementsAreCopied) {
  alignas(8) static char memory[12] = {};
  const Tensor tensor = *Tensor::FromBuffer(
      DType::kF64, {1}, Buffer::Wrap(memory + 4, 8, false, nullptr));
  DLManagedTensor* lent = *ToDLPack(tensor);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(lent->dl_tensor.data) % 8, 0u);
  lent->deleter(lent);
}

}  // namespace
}  // namespace penstock::tensor
