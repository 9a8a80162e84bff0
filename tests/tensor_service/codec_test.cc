#include "tensor_service/codec.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "grpcpp/support/slice.h"
#include "tensor_service/tensor.pb.h"

namespace penstock::tensor {
namespace {

std::string Bytes(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  EXPECT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
  return std::string(reinterpret_cast<const char*>(slice.begin()),
                     slice.size());
}

// Returns the message in slices of `cut` bytes.
grpc::ByteBuffer Cut(const std::string& bytes, size_t cut) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < bytes.size(); at += cut) {
    slices.emplace_back(bytes.substr(at, cut));
  }
  return grpc::ByteBuffer(slices.data(), slices.size());
}

grpc::ByteBuffer Whole(const std::string& bytes) {
  return Cut(bytes, bytes.size() + 1);
}

Bundle Sample() {
  Bundle bundle;
  std::vector<float> big(2000);
  for (size_t i = 0; i < big.size(); ++i) big[i] = static_cast<float>(i);
  bundle.tensors.push_back({"big", *Tensor::Of<float>({40, 50}, big)});
  bundle.tensors.push_back({"", *Tensor::Of<int64_t>({}, {-7})});
  bundle.tensors.push_back({"empty", *Tensor::Of<uint8_t>({0, 3}, {})});
  bundle.tensors.push_back({"big2", *Tensor::Of<float>({2000}, big)});
  return bundle;
}

void ExpectSame(const Bundle& a, const Bundle& b) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
    EXPECT_EQ(a.tensors[i].tensor.dtype(), b.tensors[i].tensor.dtype());
    EXPECT_EQ(a.tensors[i].tensor.shape(), b.tensors[i].tensor.shape());
    EXPECT_EQ(a.tensors[i].tensor.bytes(), b.tensors[i].tensor.bytes());
  }
}

TEST(CodecTest, GoldenBytes) {
  Bundle bundle;
  bundle.tensors.push_back({"x", *Tensor::Of<int16_t>({2}, {1, -1})});
  EXPECT_EQ(Bytes(*Encode(bundle, "hd")),
            std::string("\x12\x02hd"                // header
                        "\x0a\x10\x0a\x01x"         // tensor, name
                        "\x12\x0b\x08\x06"          // int16
                        "\x12\x01\x02"              // shape [2]
                        "\x22\x04\x01\x00\xff\xff"  // data
                        ,
                        22));
}

TEST(CodecTest, GeneratedCodeReadsWhatWeWrite) {
  Bundle bundle = Sample();
  v1::Bundle proto;
  ASSERT_TRUE(proto.ParseFromString(Bytes(*Encode(bundle))));
  ASSERT_EQ(proto.tensors_size(), 4);
  EXPECT_EQ(proto.tensors(0).name(), "big");
  EXPECT_EQ(proto.tensors(0).tensor().shape(1), 50);
  EXPECT_EQ(proto.tensors(0).tensor().data(), bundle.tensors[0].tensor.bytes());
  EXPECT_EQ(proto.tensors(1).tensor().dtype(), v1::DTYPE_INT64);
  EXPECT_EQ(proto.tensors(3).tensor().data(), bundle.tensors[3].tensor.bytes());
  EXPECT_TRUE(proto.GetReflection()->GetUnknownFields(proto).empty());
}

TEST(CodecTest, WeReadWhatGeneratedCodeWrites) {
  v1::Bundle proto;
  ASSERT_TRUE(proto.ParseFromString(Bytes(*Encode(Sample()))));
  auto decoded = Decode(Whole(proto.SerializeAsString()));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  ExpectSame(*decoded, Sample());
}

TEST(CodecTest, EveryCutOfAMessageDecodesAlike) {
  std::string bytes = Bytes(*Encode(Sample(), "header"));
  for (size_t cut : {1, 2, 3, 7, 64, 1000, 8191}) {
    std::string header;
    auto decoded = Decode(Cut(bytes, cut), &header);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(header, "header");
    ExpectSame(*decoded, Sample());
  }
}

TEST(CodecTest, PayloadIsSentFromTheTensorsMemory) {
  Bundle bundle = Sample();
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(Encode(bundle)->Dump(&slices).ok());
  ASSERT_EQ(slices.size(), 4u);
  EXPECT_EQ(reinterpret_cast<const char*>(slices[1].begin()),
            bundle.tensors[0].tensor.bytes().data());
}

TEST(CodecTest, PayloadIsReadInPlaceFromOneSlice) {
  grpc::Slice slice(Bytes(*Encode(Sample())));
  auto decoded = Decode(grpc::ByteBuffer(&slice, 1));
  ASSERT_TRUE(decoded.ok());
  const char* data = decoded->tensors[0].tensor.bytes().data();
  const char* begin = reinterpret_cast<const char*>(slice.begin());
  EXPECT_GE(data, begin);
  EXPECT_LT(data, begin + slice.size());
  EXPECT_EQ((data - begin) % kPayloadAlignment, 0u);
}

TEST(CodecTest, LargePayloadsAreAlignedWhateverPrecedesThem) {
  for (size_t name = 0; name < 200; ++name) {
    Bundle bundle;
    bundle.tensors.push_back(
        {std::string(name, 'n'),
         *Tensor::Of<uint8_t>({16200}, std::vector<uint8_t>(16200))});
    std::vector<grpc::Slice> slices;
    ASSERT_TRUE(Encode(bundle)->Dump(&slices).ok());
    EXPECT_EQ(slices[0].size() % kPayloadAlignment, 0u) << name;
    v1::Bundle proto;
    EXPECT_TRUE(proto.ParseFromString(Bytes(*Encode(bundle))));
  }
}

TEST(CodecTest, FieldsMayComeInAnyOrderUnknownAndRepeated) {
  v1::NamedTensor first;
  first.set_name("old");
  first.mutable_tensor()->set_dtype(v1::DTYPE_F64);
  first.mutable_tensor()->add_shape(2);
  first.mutable_tensor()->set_data("gone");
  v1::NamedTensor second;
  second.set_name("new");
  second.mutable_tensor()->set_dtype(v1::DTYPE_INT8);
  second.mutable_tensor()->add_shape(3);
  second.mutable_tensor()->set_data("abcdef");
  // Adds unknown fields: a varint 100, and a group 5 with a fixed32.
  std::string unknown("\xa0\x06\x01\x2b\x0d\x01\x02\x03\x04\x2c", 10);
  std::string named = unknown + first.SerializeAsString() +
                      second.SerializeAsString() + unknown;
  std::string bytes = unknown + "\x0a" +
                      std::string(1, static_cast<char>(named.size())) + named;
  v1::Bundle proto;
  ASSERT_TRUE(proto.ParseFromString(bytes));
  auto decoded = Decode(Whole(bytes));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const v1::NamedTensor& want = proto.tensors(0);
  EXPECT_EQ(decoded->tensors[0].name, want.name());
  EXPECT_EQ(decoded->tensors[0].tensor.bytes(), want.tensor().data());
  EXPECT_EQ(decoded->tensors[0].tensor.shape(), (Shape{2, 3}));
}

TEST(CodecTest, UnpackedShapeIsRead) {
  std::string tensor("\x08\x05\x10\x02\x10\x01\x22\x02xy", 10);
  std::string bytes = "\x0a\x0c\x12\x0a" + tensor;
  auto decoded = Decode(Whole(bytes));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->tensors[0].tensor.shape(), (Shape{2, 1}));
}

TEST(CodecTest, NameThatIsNotUtf8IsRefusedBothWays) {
  Bundle bundle;
  bundle.tensors.push_back({"\xc0\x80", *Tensor::Of<int8_t>({1}, {1})});
  EXPECT_FALSE(Encode(bundle).ok());
  bundle.tensors[0].name = "ab";
  std::string bytes = Bytes(*Encode(bundle));
  bytes[bytes.find("ab")] = '\xff';
  EXPECT_FALSE(Decode(Whole(bytes)).ok());
}

TEST(CodecTest, EmptyMessageIsAnEmptyBundle) {
  EXPECT_TRUE(Decode(grpc::ByteBuffer())->tensors.empty());
  EXPECT_TRUE(Decode(*Encode(Bundle()))->tensors.empty());
}

TEST(CodecTest, EveryTruncationIsAPrefixOrAnError) {
  Bundle bundle = Sample();
  bundle.tensors.resize(2);
  std::string bytes = Bytes(*Encode(bundle, "header"));
  for (size_t length = 0; length < bytes.size(); ++length) {
    std::string header;
    auto decoded = Decode(Whole(bytes.substr(0, length)), &header);
    if (decoded.ok()) {
      EXPECT_LT(decoded->tensors.size(), 2u);
    }
  }
}

// Tests mutated bytes. If protobuf's generated code and our checks accept the
// bytes, both results must be equal. If the generated code refuses, Decode()
// must refuse.
TEST(CodecTest, MutatedBytesNeverCrashAndAgreeWithGeneratedCode) {
  Bundle bundle = Sample();
  bundle.tensors.erase(bundle.tensors.begin());
  bundle.tensors.pop_back();
  bundle.tensors.push_back({"t", *Tensor::Of<int32_t>({2, 2}, {1, 2, 3, 4})});
  const std::string original = Bytes(*Encode(bundle));
  std::mt19937 random(42);
  int accepted = 0;
  for (int round = 0; round < 50000; ++round) {
    std::string bytes = original;
    for (unsigned n = 1 + random() % 3; n > 0; --n) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    v1::Bundle proto;
    bool valid = proto.ParseFromString(bytes);
    auto decoded = Decode(Cut(bytes, 1 + random() % 40));
    // Decodes the message also as one slice, because a tensor in one slice
    // usually takes another code path.
    auto whole = Decode(Whole(bytes));
    ASSERT_EQ(whole.status(), decoded.status()) << round;
    if (!decoded.ok()) continue;
    ++accepted;
    ASSERT_TRUE(valid) << round;
    ASSERT_EQ(decoded->tensors.size(),
              static_cast<size_t>(proto.tensors_size()));
    for (size_t i = 0; i < decoded->tensors.size(); ++i) {
      ASSERT_EQ(decoded->tensors[i].name, proto.tensors(i).name());
      ASSERT_EQ(decoded->tensors[i].tensor.bytes(),
                proto.tensors(i).tensor().data());
      ASSERT_EQ(whole->tensors[i].name, decoded->tensors[i].name);
      ASSERT_EQ(whole->tensors[i].tensor.ToString(),
                decoded->tensors[i].tensor.ToString());
      ASSERT_EQ(whole->tensors[i].tensor.bytes(),
                decoded->tensors[i].tensor.bytes());
    }
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace penstock::tensor
