// Tests that tensors can be read in place, for any division of a message into
// pieces.

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "tensor_service/codec.h"
#include "tensor_service/tensor.pb.h"
#include "tests/tensor_service/random_bundle.h"

namespace penstock::tensor {
namespace {

// The size up to which gRPC keeps slices inside their handles, in bytes.
constexpr size_t kInHandleBytes = 23;

// Returns a copy of `bytes` at `shift` bytes after a multiple of 64.
grpc::Slice At(size_t shift, const std::string& bytes) {
  auto memory = *Buffer::Allocate(shift + bytes.size());
  memcpy(memory->mutable_data() + shift, bytes.data(), bytes.size());
  auto* held = new std::shared_ptr<Buffer>(memory);
  return grpc::Slice(
      memory->mutable_data() + shift, bytes.size(),
      [](void* arg) { delete static_cast<std::shared_ptr<Buffer>*>(arg); },
      held);
}

std::string BytesOf(const grpc::Slice& slice) {
  return std::string(reinterpret_cast<const char*>(slice.begin()),
                     slice.size());
}

bool IsOneOf(const Bundle& bundle, const grpc::Slice& slice) {
  for (const NamedTensor& named : bundle.tensors) {
    const char* const data = named.tensor.bytes().data();
    if (reinterpret_cast<const uint8_t*>(data) == slice.begin()) return true;
  }
  return false;
}

// Returns a message as Penstock delivers it over shm: pooled memory in separate
// pieces, and the rest in aligned pieces.
std::vector<grpc::Slice> Delivered(const grpc::ByteBuffer& message,
                                   const Bundle& bundle, std::mt19937* random) {
  std::vector<grpc::Slice> sent;
  EXPECT_TRUE(message.Dump(&sent).ok());
  std::vector<grpc::Slice> got;
  std::string run;
  for (const grpc::Slice& slice : sent) {
    if (!IsOneOf(bundle, slice) || (*random)() % 2 == 0) {
      run += BytesOf(slice);
      continue;
    }
    if (!run.empty()) got.push_back(At(0, run));
    run.clear();
    got.push_back(At(0, BytesOf(slice)));
  }
  if (!run.empty()) got.push_back(At(0, run));
  return got;
}

bool LiesIn(const std::vector<grpc::Slice>& slices, const Tensor& tensor) {
  const auto* data = reinterpret_cast<const uint8_t*>(tensor.bytes().data());
  for (const grpc::Slice& slice : slices) {
    if (data >= slice.begin() && data < slice.end()) return true;
  }
  return false;
}

// Expects that the message is decoded without copies.
void ExpectReadInPlace(const std::vector<grpc::Slice>& slices,
                       const Bundle& sent) {
  const auto got = Decode(grpc::ByteBuffer(slices.data(), slices.size()));
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->tensors.size(), sent.tensors.size());
  for (size_t i = 0; i < sent.tensors.size(); ++i) {
    const Tensor& tensor = got->tensors[i].tensor;
    EXPECT_TRUE(tensor.IsAligned()) << tensor.ToString();
    EXPECT_EQ(tensor.bytes(), sent.tensors[i].tensor.bytes());
    if (tensor.byte_size() > kInHandleBytes) {
      EXPECT_TRUE(LiesIn(slices, tensor)) << tensor.ToString();
    }
  }
}

TEST(Alignment, TensorsAreReadInPlaceFromOnePieceAndFromMany) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    Bundle bundle =
        RandomBundle(&random, 100000, HeapAllocator(), HeapAllocator());
    // Adds tensors of more than half of the message, because otherwise Decode()
    // copies all.
    bundle.tensors.push_back(
        {"large", *Tensor::Allocate(DType::kF32, {25000})});
    const std::string header(random() % 100, 'h');
    const auto message =
        Encode(bundle, header, /*checksums=*/random() % 2 == 0);
    ASSERT_TRUE(message.ok());
    grpc::Slice whole;
    ASSERT_TRUE(message->DumpToSingleSlice(&whole).ok());
    ExpectReadInPlace({At(0, BytesOf(whole))}, bundle);
    ExpectReadInPlace(Delivered(*message, bundle, &random), bundle);
    v1::Bundle proto;
    EXPECT_TRUE(proto.ParseFromString(BytesOf(whole)));
  }
}

TEST(Alignment, OddLengthsEndAtAMultiple) {
  for (size_t size = kCopyBelowBytes; size < kCopyBelowBytes + 200; ++size) {
    Bundle bundle;
    bundle.tensors.push_back(
        {"odd", *Tensor::Allocate(DType::kInt8, {static_cast<int64_t>(size)})});
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(Encode(bundle)->Dump(&slices).ok());
    ASSERT_EQ(slices.size(), 2u);
    const size_t begin = slices[0].size();
    const size_t aligned = size % kPartAlignment == 0 ? begin : begin + size;
    EXPECT_EQ(aligned % kPayloadAlignment, 0u) << size;
  }
}

// Tests pieces as they arrive over shm: long tensors lie in the sender's pool,
// and the bytes between them are separate pieces.
TEST(Alignment, PiecesLieAsTheMessageHasThem) {
  for (int64_t odd = 1025; odd < 1040; ++odd) {
    Bundle bundle;
    for (int i = 0; i < 3; ++i) {
      bundle.tensors.push_back({"odd", *Tensor::Allocate(DType::kInt8, {odd})});
      bundle.tensors.push_back({"short", *Tensor::Allocate(DType::kF64, {9})});
    }
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(Encode(bundle)->Dump(&slices).ok());
    size_t at = 0;
    for (const grpc::Slice& slice : slices) {
      const bool is_piece = slice.size() != static_cast<size_t>(odd);
      if (is_piece) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(slice.begin()) % kPartAlignment,
                  at % kPartAlignment)
            << "at " << at << " after " << odd;
      }
      at += slice.size();
    }
  }
}

// Tests sizes at which the encoded length becomes one byte longer.
TEST(Alignment, EveryWidthOfALengthIsPadded) {
  for (size_t name = 0; name < 80; ++name) {
    for (int64_t size = 16384 - 350; size < 16384 + 50; ++size) {
      Bundle bundle;
      bundle.tensors.push_back(
          {std::string(name, 'n'), *Tensor::Allocate(DType::kInt8, {size})});
      std::vector<grpc::Slice> slices;
      ASSERT_TRUE(Encode(bundle)->Dump(&slices).ok());
      const size_t begin = slices[0].size();
      const size_t aligned = begin + (size % 8 == 0 ? 0 : slices[1].size());
      ASSERT_EQ(aligned % kPayloadAlignment, 0u) << name << ", " << size;
      ASSERT_TRUE(Decode(*Encode(bundle)).ok()) << name << ", " << size;
    }
  }
}

// Tests tensors of a sender that does not align them, or that come over HTTP/2.
TEST(Alignment, ShortTensorsAreAlignedWhereverTheyCome) {
  for (const int64_t elements : {1, 2, 3, 10, 127}) {
    const Tensor sent = *Tensor::Of<double>(
        {elements}, std::vector<double>(static_cast<size_t>(elements), 0.5));
    v1::Bundle proto;
    v1::Tensor* tensor = proto.add_tensors()->mutable_tensor();
    tensor->set_dtype(v1::DTYPE_F64);
    tensor->add_shape(elements);
    tensor->set_data(std::string(sent.bytes()));
    for (size_t shift = 0; shift < 8; ++shift) {
      const grpc::Slice slice = At(shift, proto.SerializeAsString());
      const auto got = Decode(grpc::ByteBuffer(&slice, 1));
      ASSERT_TRUE(got.ok()) << got.status();
      const auto values = got->tensors[0].tensor.flat<double>();
      ASSERT_TRUE(values.ok()) << values.status();
      EXPECT_EQ(values->back(), 0.5);
    }
  }
}

TEST(Alignment, LongTensorOfAnotherSenderMayNeedAligned) {
  const Tensor sent = *Tensor::Of<float>({1000}, std::vector<float>(1000, 2));
  const grpc::Slice slice = At(1, std::string(sent.bytes()));
  const Tensor got = *Tensor::FromSlice(DType::kF32, {1000}, slice);
  EXPECT_FALSE(got.flat<float>().ok());
  EXPECT_EQ((*got.Aligned()->flat<float>())[999], 2);
}

}  // namespace
}  // namespace penstock::tensor
