// Tests bundles through PutStream and GetStream, and interrupted streams.

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "tensor_service/client.h"
#include "tensor_service/service.h"
#include "tensor_service/status.h"
#include "tensor_service/tensor.grpc.pb.h"

namespace penstock::tensor {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr size_t kBudget = 4 * kMiB;

Tensor OfBytes(size_t size, uint8_t value = 7) {
  return *Tensor::Of<uint8_t>({static_cast<int64_t>(size)},
                              std::vector<uint8_t>(size, value));
}

Bundle Only(const std::string& name, const Tensor& tensor) {
  Bundle bundle;
  bundle.tensors.push_back({name, tensor});
  return bundle;
}

class StreamServiceTest : public testing::Test {
 protected:
  StreamServiceTest() : service_(MakeTensorService(&store_)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
  }
  ~StreamServiceTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  // Makes a channel with the stock limit of 4 MiB per message.
  std::shared_ptr<grpc::Channel> Channel() const {
    return grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_),
                               grpc::InsecureChannelCredentials());
  }

  // Returns a message with a whole tensor.
  static v1::BundlePart Whole(const std::string& name, size_t size) {
    v1::BundlePart part;
    part.add_tensors()->set_name(name);
    v1::Tensor* tensor = part.mutable_tensors(0)->mutable_tensor();
    tensor->set_dtype(v1::DTYPE_UINT8);
    tensor->add_shape(static_cast<int64_t>(size));
    tensor->set_data(std::string(size, 'w'));
    return part;
  }

  // Waits until the store has room for nearly all of its budget.
  bool GetsRoom() {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!store_.Put(Only("room", OfBytes(kBudget - 2 * kKiB))).ok()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    store_.Delete({"room"});
    return true;
  }

  static TensorStore::Options Options() {
    TensorStore::Options options;
    options.budget_bytes = kBudget;
    options.client_share = 1;
    return options;
  }

  TensorStore store_{Options()};
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

TEST_F(StreamServiceTest, BundleGoesThereAndBackInSmallMessages) {
  TensorClient client(Channel());
  Bundle bundle;
  bundle.tensors.push_back({"long", OfBytes(kMiB + 13, 1)});
  bundle.tensors.push_back({"short", OfBytes(5, 2)});
  bundle.tensors.push_back({"other", OfBytes(100 * kKiB, 3)});
  bundle.tensors.push_back({"none", OfBytes(0)});
  const auto stored = client.PutStream(bundle, 16 * kKiB);
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(store_.All().tensors.size(), 4u);
  const auto got =
      client.GetStream({"other", "none", "short", "long"}, 16 * kKiB);
  ASSERT_TRUE(got.ok()) << got.status();
  for (const NamedTensor& named : bundle.tensors) {
    ASSERT_NE(got->Find(named.name), nullptr);
    EXPECT_EQ(got->Find(named.name)->bytes(), named.tensor.bytes());
    EXPECT_EQ(got->Find(named.name)->shape(), named.tensor.shape());
  }
}

TEST_F(StreamServiceTest, WhatIsTooLongForOneMessageGoesInParts) {
  grpc::ChannelArguments limits;
  limits.SetMaxSendMessageSize(128 * kKiB);
  limits.SetMaxReceiveMessageSize(128 * kKiB);
  const auto channel =
      grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_),
                                grpc::InsecureChannelCredentials(), limits);
  TensorClient whole(channel);
  TensorClient parts(channel, absl::Seconds(60), nullptr, 64 * kKiB);
  Bundle bundle = Only("long", OfBytes(kMiB + 13, 1));
  bundle.tensors.push_back({"short", OfBytes(5, 2)});
  bundle.tensors.push_back({"middle", OfBytes(60 * kKiB, 3)});
  EXPECT_FALSE(whole.Put(bundle).ok());
  const auto stored = parts.Put(bundle);
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(store_.All().tensors.size(), 3u);

  const std::vector<std::string> names = {"middle", "long", "short"};
  EXPECT_FALSE(whole.Get(names).ok());
  std::vector<Destination> into;
  into.emplace_back("long", OfBytes(kMiB + 13));
  into.emplace_back("middle", OfBytes(60 * kKiB));
  into.emplace_back("short", OfBytes(6));
  const auto got = parts.Get(names, absl::MakeSpan(into));
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_EQ(got->tensors.size(), 3u);
  EXPECT_EQ(got->tensors[1].name, "long");
  for (const NamedTensor& named : bundle.tensors) {
    EXPECT_EQ(got->Find(named.name)->bytes(), named.tensor.bytes());
  }
  EXPECT_EQ(got->Find("long")->buffer(), into[0].into.buffer());
  EXPECT_EQ(got->Find("middle")->buffer(), into[1].into.buffer());
  EXPECT_EQ(into[2].used.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(parts.Get({"long", "none"}).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(StreamServiceTest, CallerThatTakesLessInOneMessageIsToldSo) {
  ASSERT_TRUE(store_.Put(Only("x", OfBytes(kKiB))).ok());
  auto stub = v1::TensorExchange::NewStub(Channel());
  v1::GetRequest request;
  request.add_names("x");
  for (const uint64_t most : {uint64_t{0}, uint64_t{kKiB}, UINT64_MAX}) {
    grpc::ClientContext context;
    v1::Bundle got;
    request.set_max_bytes(most);
    EXPECT_TRUE(stub->Get(&context, request, &got).ok()) << most;
  }
  grpc::ClientContext context;
  v1::Bundle got;
  request.set_max_bytes(kKiB - 1);
  EXPECT_EQ(stub->Get(&context, request, &got).error_code(),
            grpc::StatusCode::OUT_OF_RANGE);
}

TEST_F(StreamServiceTest, InterruptedStreamIsCancelled) {
  TensorClient client(
      Channel(), absl::InfiniteDuration(), [] { return true; }, kKiB);
  // Ends the server, so that nothing listens at this address.
  server_->Shutdown(std::chrono::system_clock::now());
  EXPECT_EQ(client.Put(Only("x", OfBytes(kMiB))).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(client.GetStream({"x"}).status().code(),
            absl::StatusCode::kCancelled);
}

TEST_F(StreamServiceTest, EmptyBundleIsStored) {
  EXPECT_EQ(*TensorClient(Channel()).PutStream(Bundle()), 0u);
}

TEST_F(StreamServiceTest, MissingNameIsNamed) {
  const auto got = TensorClient(Channel()).GetStream({"absent"});
  EXPECT_EQ(got.status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(got.status().message(), "absent"));
}

TEST_F(StreamServiceTest, TensorWithoutANameIsRefusedAtTheEnd) {
  Bundle bundle = Only("x", OfBytes(1));
  bundle.tensors.push_back({"", OfBytes(1)});
  EXPECT_EQ(TensorClient(Channel()).PutStream(bundle).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(store_.All().tensors.empty());
}

TEST_F(StreamServiceTest, NameThatIsNotUtf8CutsTheStream) {
  Bundle bundle = Only("x", OfBytes(kMiB));
  bundle.tensors.push_back({"\xff", OfBytes(kMiB)});
  EXPECT_EQ(TensorClient(Channel()).PutStream(bundle).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(GetsRoom());
  EXPECT_TRUE(store_.All().tensors.empty());
}

// The last tensor alone would fit into the budget. The store also counts the
// earlier tensors of the stream.
TEST_F(StreamServiceTest, BudgetIsEnforcedAndNothingChanges) {
  TensorClient client(Channel());
  ASSERT_TRUE(client.PutStream(Only("a", OfBytes(kKiB, 1))).ok());
  Bundle bundle = Only("a", OfBytes(3 * kMiB, 2));
  bundle.tensors.push_back({"b", OfBytes(2 * kMiB)});
  const auto stored = client.PutStream(bundle, 64 * kKiB);
  EXPECT_EQ(stored.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(
      absl::StrContains(stored.status().message(), absl::StrCat(kBudget)))
      << stored.status();
  EXPECT_EQ(store_.All().tensors.size(), 1u);
  EXPECT_EQ((*store_.Get({"a"})).tensors[0].tensor.bytes(),
            std::string(kKiB, 1));
  EXPECT_TRUE(store_.Put(Only("c", OfBytes(kBudget - 4 * kKiB))).ok());
}

// Tests a stock client that sends one piece of a terabyte, and no more. The
// client must get its answer.
TEST_F(StreamServiceTest, ClaimAboveTheBudgetIsRefusedWithItsFirstPiece) {
  auto stub = v1::TensorExchange::NewStub(Channel());
  grpc::ClientContext context;
  v1::PutReply reply;
  auto writer = stub->PutStream(&context, &reply);
  v1::BundlePart part = Whole("t", 10);
  part.mutable_header()->mutable_piece()->set_dtype(v1::DTYPE_UINT8);
  part.mutable_header()->mutable_piece()->add_shape(int64_t{1} << 40);
  writer->Write(part);
  // Finishes without WritesDone(), while the stream is still open.
  const grpc::Status status = writer->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(StreamServiceTest, GatheredTensorsCountForOthersToo) {
  auto stub = v1::TensorExchange::NewStub(Channel());
  grpc::ClientContext context;
  v1::PutReply reply;
  auto writer = stub->PutStream(&context, &reply);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(writer->Write(Whole(absl::StrCat(i), kMiB)));
  }
  // Waits, because gRPC may still be delivering the messages.
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (store_.Put(Only("x", OfBytes(2 * kMiB))).ok()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    store_.Delete({"x"});
    std::this_thread::yield();
  }
  EXPECT_TRUE(store_.All().tensors.empty());
  v1::BundlePart last;
  last.mutable_header()->set_is_last(true);
  ASSERT_TRUE(writer->Write(last));
  ASSERT_TRUE(writer->WritesDone());
  const grpc::Status status = writer->Finish();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(store_.All().tensors.size(), 3u);
}

TEST_F(StreamServiceTest, StreamThatIsCancelledStoresNothing) {
  auto stub = v1::TensorExchange::NewStub(Channel());
  grpc::ClientContext context;
  v1::PutReply reply;
  auto writer = stub->PutStream(&context, &reply);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(writer->Write(Whole(absl::StrCat(i), kMiB)));
  }
  context.TryCancel();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(GetsRoom());
  EXPECT_TRUE(store_.All().tensors.empty());
}

TEST_F(StreamServiceTest, StreamThatEndsEarlyStoresNothing) {
  auto stub = v1::TensorExchange::NewStub(Channel());
  grpc::ClientContext context;
  v1::PutReply reply;
  auto writer = stub->PutStream(&context, &reply);
  ASSERT_TRUE(writer->Write(Whole("x", kKiB)));
  ASSERT_TRUE(writer->WritesDone());
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_TRUE(store_.All().tensors.empty());
  EXPECT_TRUE(GetsRoom());
}

TEST_F(StreamServiceTest, MessageAfterTheLastStoresNothing) {
  auto stub = v1::TensorExchange::NewStub(Channel());
  grpc::ClientContext context;
  v1::PutReply reply;
  auto writer = stub->PutStream(&context, &reply);
  v1::BundlePart last = Whole("x", kKiB);
  last.mutable_header()->set_is_last(true);
  writer->Write(last);
  writer->Write(Whole("y", kKiB));
  writer->WritesDone();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(store_.All().tensors.empty());
}

TEST_F(StreamServiceTest, StockStubReadsWhatWeStreamed) {
  const Tensor tensor =
      *Tensor::Of<float>({50, 50}, std::vector<float>(2500, 3));
  ASSERT_TRUE(TensorClient(Channel()).PutStream(Only("x", tensor)).ok());
  auto stub = v1::TensorExchange::NewStub(Channel());
  grpc::ClientContext context;
  v1::GetStreamRequest request;
  request.add_names("x");
  request.set_max_message_bytes(1);  // the minimum of the service
  auto reader = stub->GetStream(&context, request);
  v1::BundlePart part;
  std::string bytes;
  while (reader->Read(&part)) {
    ASSERT_EQ(part.tensors_size(), 1);
    EXPECT_EQ(part.tensors(0).name(), "x");
    EXPECT_EQ(part.header().piece().dtype(), v1::DTYPE_F32);
    EXPECT_EQ(part.header().piece().shape_size(), 2);
    EXPECT_EQ(part.header().piece().offset(), bytes.size());
    bytes += part.tensors(0).tensor().data();
    EXPECT_EQ(part.header().is_last(), bytes.size() == tensor.byte_size());
  }
  EXPECT_TRUE(reader->Finish().ok());
  EXPECT_EQ(bytes, tensor.bytes());
}

TEST_F(StreamServiceTest, ReaderThatGoesAwayEndsTheStream) {
  ASSERT_TRUE(store_.Put(Only("x", OfBytes(3 * kMiB))).ok());
  auto stub = v1::TensorExchange::NewStub(Channel());
  grpc::ClientContext context;
  v1::GetStreamRequest request;
  request.add_names("x");
  request.set_max_message_bytes(4 * kKiB);
  auto reader = stub->GetStream(&context, request);
  v1::BundlePart part;
  ASSERT_TRUE(reader->Read(&part));
  context.TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

}  // namespace
}  // namespace penstock::tensor
