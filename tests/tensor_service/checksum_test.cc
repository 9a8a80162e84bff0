#include "tensor_service/checksum.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "tensor_service/client.h"
#include "tensor_service/codec.h"
#include "tensor_service/service.h"
#include "tensor_service/tensor.grpc.pb.h"
#include "tests/tensor_service/random_bundle.h"

namespace penstock::tensor {
namespace {

std::string Flat(const grpc::ByteBuffer& message) {
  grpc::Slice slice;
  EXPECT_TRUE(message.DumpToSingleSlice(&slice).ok());
  return std::string(reinterpret_cast<const char*>(slice.begin()),
                     slice.size());
}

grpc::ByteBuffer Whole(const std::string& bytes) {
  grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// Restores the process's setting.
class SendingChecksums {
 public:
  SendingChecksums() { SendChecksums(true); }
  ~SendingChecksums() { SendChecksums(false); }
};

// Tests xxHash's own test vectors: xxhsum -H3 of nothing and of "a".
TEST(Checksum, IsXxh3) {
  EXPECT_EQ(ChecksumOf(""), 0x2d06800538d394c2u);
  EXPECT_EQ(ChecksumOf("a"), 0xe6c632b61e964e1fu);
}

TEST(Checksum, GoldenBytes) {
  Bundle bundle;
  bundle.tensors.push_back({"x", *Tensor::Of<uint8_t>({2}, {'a', 'a'})});
  const std::string bytes = Flat(*Encode(bundle, "", /*checksums=*/true));
  const uint64_t checksum = ChecksumOf("aa");
  std::string expected("\x0a\x17\x0a\x01x\x12\x12\x08\x09\x12\x01\x02\x29", 13);
  for (int i = 0; i < 8; ++i) {
    expected.push_back(static_cast<char>(checksum >> 8 * i));
  }
  EXPECT_EQ(bytes, expected + "\x22\x02" + "aa");
}

TEST(Checksum, EveryBitThatChangesIsFoundAndItsTensorNamed) {
  Bundle bundle;
  bundle.tensors.push_back({"whole", *Tensor::Of<uint8_t>({3}, {1, 2, 3})});
  bundle.tensors.push_back(
      {"broken", *Tensor::Of<float>({9}, std::vector<float>(9, 1))});
  const std::string sent = Flat(*Encode(bundle, "", /*checksums=*/true));
  ASSERT_TRUE(Decode(Whole(sent)).ok());
  for (size_t bit = 0; bit < 36 * 8; ++bit) {
    std::string received = sent;
    received[sent.size() - 36 + bit / 8] ^= static_cast<char>(1 << bit % 8);
    const absl::Status status = Decode(Whole(received)).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << bit << ": " << status;
    EXPECT_NE(status.message().find("broken, f32[9]"), std::string::npos)
        << status;
  }
}

TEST(Checksum, RandomBundlesComeThroughWithAndWithout) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const Bundle bundle =
        RandomBundle(&random, 10000, HeapAllocator(), HeapAllocator());
    for (bool checksums : {false, true}) {
      const std::string bytes = Flat(*Encode(bundle, "header", checksums));
      const auto got = Decode(Whole(bytes));
      ASSERT_TRUE(got.ok()) << got.status();
      v1::Bundle generated;
      ASSERT_TRUE(generated.ParseFromString(bytes));
      for (size_t i = 0; i < bundle.tensors.size(); ++i) {
        const v1::Tensor& tensor = generated.tensors(i).tensor();
        EXPECT_EQ(got->tensors[i].tensor.bytes(), tensor.data());
        EXPECT_EQ(tensor.has_checksum(), checksums);
        if (checksums) {
          EXPECT_EQ(tensor.checksum(), ChecksumOf(tensor.data()));
        }
      }
    }
  }
}

TEST(Checksum, OfAPeerWithGeneratedCodeIsChecked) {
  v1::Bundle bundle;
  v1::Tensor* const tensor = bundle.add_tensors()->mutable_tensor();
  tensor->set_dtype(v1::DTYPE_UINT8);
  tensor->add_shape(3);
  tensor->set_data("abc");
  EXPECT_TRUE(Decode(Whole(bundle.SerializeAsString())).ok());
  tensor->set_checksum(ChecksumOf("abc"));
  EXPECT_TRUE(Decode(Whole(bundle.SerializeAsString())).ok());
  tensor->set_checksum(0);
  EXPECT_TRUE(
      absl::IsDataLoss(Decode(Whole(bundle.SerializeAsString())).status()));
}

TEST(Checksum, CutOffIsMalformed) {
  // Encodes by hand a bundle with a checksum of seven bytes.
  const std::string bytes(
      "\x0a\x0a\x12\x08\x29"
      "1234567",
      12);
  EXPECT_TRUE(absl::IsInvalidArgument(Decode(Whole(bytes)).status()));
}

// Tests memory that the sender changes after the encoding, by mistake.
TEST(Checksum, SenderThatWritesWhileItSendsIsFound) {
  const SendingChecksums sending;
  Bundle bundle;
  bundle.tensors.push_back(
      {"w", *Tensor::Of<uint8_t>({4096}, std::vector<uint8_t>(4096, 1))});
  const auto message = Encode(bundle);
  ASSERT_TRUE(Decode(*message).ok());
  bundle.tensors[0].tensor.buffer()->mutable_data()[4095] = 2;
  EXPECT_TRUE(absl::IsDataLoss(Decode(*message).status()));
}

TEST(Checksum, AreSentOnceTheProgramChoosesThem) {
  TensorStore store(1 << 20);
  const auto service = MakeTensorService(&store);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(service.get());
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  const auto channel = grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                                           grpc::InsecureChannelCredentials());
  TensorClient client(channel);
  const SendingChecksums sending;
  Bundle bundle;
  bundle.tensors.push_back({"w", *Tensor::Of<float>({2}, {1, 2})});
  ASSERT_TRUE(client.Put(bundle).ok());
  const auto got = client.Get({"w"});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->tensors[0].tensor.bytes(), bundle.tensors[0].tensor.bytes());
  // Reads the answer with protobuf's generated code.
  const auto stub = v1::TensorExchange::NewStub(channel);
  grpc::ClientContext context;
  v1::GetRequest request;
  request.add_names("w");
  v1::Bundle answer;
  ASSERT_TRUE(stub->Get(&context, request, &answer).ok());
  EXPECT_EQ(answer.tensors(0).tensor().checksum(),
            ChecksumOf(bundle.tensors[0].tensor.bytes()));
}

}  // namespace
}  // namespace penstock::tensor
