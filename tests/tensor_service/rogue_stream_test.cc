// Tests a server whose GetStream sends arbitrary messages. The client must stay
// within its budget.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "tensor_service/client.h"
#include "tensor_service/tensor.grpc.pb.h"

namespace penstock::tensor {
namespace {

using testing::HasSubstr;
using Writer = grpc::ServerWriter<v1::BundlePart>;

constexpr size_t kMiB = 1 << 20;

class Rogue : public v1::TensorExchange::Service {
 public:
  grpc::Status GetStream(grpc::ServerContext* /*context*/,
                         const v1::GetStreamRequest* /*request*/,
                         Writer* writer) override {
    answer(writer);
    return grpc::Status::OK;
  }

  std::function<void(Writer*)> answer;
};

v1::BundlePart Part(const std::string& name, size_t size) {
  v1::BundlePart part;
  part.add_tensors()->set_name(name);
  v1::Tensor* const tensor = part.mutable_tensors(0)->mutable_tensor();
  tensor->set_dtype(v1::DTYPE_UINT8);
  tensor->add_shape(static_cast<int64_t>(size));
  tensor->set_data(std::string(size, 'r'));
  return part;
}

class RogueStreamTest : public testing::Test {
 protected:
  RogueStreamTest() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(&rogue_);
    server_ = builder.BuildAndStart();
  }
  ~RogueStreamTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  absl::StatusOr<Bundle> Get(size_t max_bytes) {
    TensorClient client(grpc::CreateChannel(
        absl::StrCat("127.0.0.1:", port_), grpc::InsecureChannelCredentials()));
    return client.GetStream({"x"}, 0, max_bytes);
  }
  // Sends `part` repeatedly, ignoring the client. The total fits into gRPC's
  // initial window, so the call ends soon.
  static std::function<void(Writer*)> Often(const v1::BundlePart& part,
                                            int times) {
    return [part, times](Writer* writer) {
      for (int i = 0; i < times && writer->Write(part); ++i) {
      }
    };
  }

  Rogue rogue_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

TEST_F(RogueStreamTest, AHugeTensorIsRefusedByItsFirstPiece) {
  for (const int bits : {21, 40, 50, 62}) {
    rogue_.answer = [bits](Writer* writer) {
      v1::BundlePart part = Part("x", 100);
      v1::Piece* const piece = part.mutable_header()->mutable_piece();
      piece->set_dtype(v1::DTYPE_UINT8);
      piece->add_shape(int64_t{1} << bits);
      writer->Write(part);
    };
    const auto got = Get(kMiB);
    EXPECT_TRUE(absl::IsResourceExhausted(got.status())) << got.status();
    EXPECT_THAT(std::string(got.status().message()), HasSubstr("max_bytes"));
  }
  const auto got = Get(0);
  EXPECT_TRUE(absl::IsResourceExhausted(got.status())) << got.status();
  EXPECT_THAT(std::string(got.status().message()), HasSubstr("max_bytes"));
}

TEST_F(RogueStreamTest, AStreamOfManyTensorsEndsAtTheBudget) {
  rogue_.answer = Often(Part("x", 1000), 20);
  const auto got = Get(10'000);
  EXPECT_TRUE(absl::IsResourceExhausted(got.status())) << got.status();
  EXPECT_TRUE(absl::IsDataLoss(Get(kMiB).status())) << "all of it fits";
}

// Tests names and shapes, which take memory too.
TEST_F(RogueStreamTest, SoDoesOneOfTensorsWithoutElements) {
  rogue_.answer = Often(Part("", 0), 100);
  EXPECT_TRUE(absl::IsResourceExhausted(Get(10'000).status()));
  rogue_.answer = Often(Part(std::string(5000, 'n'), 0), 4);
  EXPECT_TRUE(absl::IsResourceExhausted(Get(10'000).status()));
}

TEST_F(RogueStreamTest, WhatFitsIsTaken) {
  rogue_.answer = [](Writer* writer) {
    v1::BundlePart part = Part("x", kMiB / 2);
    part.mutable_header()->set_is_last(true);
    writer->Write(part);
  };
  const auto got = Get(kMiB);
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->Find("x")->byte_size(), kMiB / 2);
}

}  // namespace
}  // namespace penstock::tensor
