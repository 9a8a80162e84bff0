#include "tensor_service/service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "tensor_service/client.h"
#include "tensor_service/status.h"
#include "tensor_service/tensor.grpc.pb.h"

namespace penstock::tensor {
namespace {

constexpr size_t kBudget = 64 << 20;

class TensorServiceTest : public testing::Test {
 protected:
  void Start(bool unlimited) {
    service_ = MakeTensorService(&store_);
    grpc::ServerBuilder builder;
    if (unlimited) AllowUnlimitedMessages(&builder);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  std::shared_ptr<grpc::Channel> Channel(const grpc::ChannelArguments& args) {
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_),
                                     grpc::InsecureChannelCredentials(), args);
  }

  static Bundle Floats(const std::string& name, size_t count, float value) {
    std::vector<float> values(count, value);
    Bundle bundle;
    bundle.tensors.push_back(
        {name, *Tensor::Of<float>({static_cast<int64_t>(count)}, values)});
    return bundle;
  }

  TensorStore store_{kBudget};
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

TEST_F(TensorServiceTest, TensorsAreReceivedIntoTheCallersMemory) {
  Start(/*unlimited=*/true);
  TensorClient client(Channel(UnlimitedMessages()));
  // Stores a tensor that is long enough for several slices of HTTP/2.
  ASSERT_TRUE(client.Put(Floats("w", 1000000, 1)).ok());
  std::vector<Destination> places;
  places.emplace_back("w", *Tensor::Allocate(DType::kF32, {1000000}));
  ASSERT_TRUE(client.Get({"w"}, absl::MakeSpan(places)).ok());
  EXPECT_TRUE(places[0].used.ok()) << places[0].used;
  EXPECT_EQ((*places[0].into.flat<float>())[999999], 1);
  ASSERT_TRUE(
      client.Exchange(Floats("w", 1000000, 2), absl::MakeSpan(places)).ok());
  EXPECT_TRUE(places[0].used.ok()) << places[0].used;
  ASSERT_TRUE(client.Get({"w"}, absl::MakeSpan(places)).ok());
  EXPECT_EQ((*places[0].into.flat<float>())[999999], 2);
}

TEST_F(TensorServiceTest, PutGetExchangeListDelete) {
  Start(/*unlimited=*/true);
  TensorClient client(Channel(UnlimitedMessages()));
  EXPECT_EQ(*client.Put(Floats("w", 10, 1)), TensorStore::kEntryBytes + 1 + 40);
  auto old = client.Exchange(Floats("w", 5, 2));
  ASSERT_TRUE(old.ok()) << old.status();
  EXPECT_EQ(old->tensors.size(), 1u);
  EXPECT_EQ(old->tensors[0].tensor.shape(), Shape{10});
  auto now = client.Get({"w"});
  ASSERT_TRUE(now.ok());
  EXPECT_EQ(now->tensors[0].tensor.shape(), Shape{5});
  auto list = client.List();
  ASSERT_TRUE(list.ok());
  EXPECT_EQ(list->front().name, "w");
  EXPECT_EQ(*client.Delete({"w", "none"}), 1u);
  EXPECT_EQ(client.Get({"w"}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(TensorServiceTest, ViewsAreStoredAsPackedTensors) {
  Start(/*unlimited=*/true);
  TensorClient client(Channel(UnlimitedMessages()));
  const Tensor matrix = *Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto transposed =
      StridedView::Create(DType::kF32, {3, 2}, {4, 12}, matrix.buffer());
  ASSERT_TRUE(transposed.ok()) << transposed.status();
  ASSERT_TRUE(client.Put(Floats("w", 1, 7), {{"t", *transposed}}).ok());
  const auto got = client.Get({"t", "w"});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->tensors[0].tensor.shape(), (Shape{3, 2}));
  EXPECT_EQ(*got->tensors[0].tensor.flat<float>(),
            (std::vector<float>{1, 4, 2, 5, 3, 6}));
}

// Tests long names in errors. gRPC limits the metadata that carries an error's
// text.
TEST_F(TensorServiceTest, LongNamesSpoilNeitherTheirErrorNorTheConnection) {
  Start(/*unlimited=*/true);
  TensorClient client(Channel(UnlimitedMessages()));
  for (size_t size : {1000, 9000, 20000, 60000}) {
    const absl::Status missing = client.Get({std::string(size, 'x')}).status();
    EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound) << size;
    std::string two_bytes_each;
    while (two_bytes_each.size() < size) two_bytes_each += "\xc3\xa9";
    EXPECT_EQ(client.Get({two_bytes_each}).status().code(),
              absl::StatusCode::kNotFound)
        << size;
    for (int i = 0; i < 10; ++i) {
      const auto stored = client.Put(Floats("w", 1, 1));
      EXPECT_TRUE(stored.ok()) << size << ": " << stored.status();
    }
  }
}

TEST_F(TensorServiceTest, InterruptedCallIsCancelledAndAsksNoMore) {
  int asked = 0;
  // Makes a call to an address at which nobody listens, so the call waits for a
  // connection.
  TensorClient client(
      grpc::CreateChannel(
          absl::StrCat("unix-abstract:penstock-nobody-", getpid()),
          grpc::InsecureChannelCredentials()),
      absl::InfiniteDuration(), [&asked] { return ++asked == 2; });
  EXPECT_EQ(client.List().status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 2);
}

TEST_F(TensorServiceTest, BundleAboveFourMebibytesPasses) {
  Start(/*unlimited=*/true);
  TensorClient client(Channel(UnlimitedMessages()));
  ASSERT_TRUE(client.Put(Floats("big", 3 << 20, 1.5F)).ok());
  auto got = client.Get({"big"});
  ASSERT_TRUE(got.ok()) << got.status();
  auto aligned = got->tensors[0].tensor.Aligned();
  EXPECT_EQ((*aligned->flat<float>())[(3 << 20) - 1], 1.5F);
}

TEST_F(TensorServiceTest, StockLimitIsNamedInTheError) {
  Start(/*unlimited=*/false);
  TensorClient client(Channel(UnlimitedMessages()));
  absl::Status status = client.Put(Floats("big", 3 << 20, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("AllowUnlimitedMessages"),
            absl::string_view::npos)
      << status;
}

TEST_F(TensorServiceTest, ReplyAboveTheClientsLimitNamesTheClientsSetting) {
  Start(/*unlimited=*/true);
  // Makes a client that may put tensors of any size, but may receive only
  // messages up to stock gRPC's limit.
  TensorClient client(Channel({}));
  ASSERT_TRUE(client.Put(Floats("big", 3 << 20, 1)).ok());
  absl::Status status = client.Get({"big"}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("max_receive_message_length"),
            absl::string_view::npos)
      << status;
  EXPECT_NE(status.message().find("tensor::UnlimitedMessages on a channel"),
            absl::string_view::npos)
      << status;
}

TEST_F(TensorServiceTest, RequestAboveTheClientsLimitNamesTheSendersSetting) {
  Start(/*unlimited=*/true);
  grpc::ChannelArguments arguments;
  arguments.SetMaxSendMessageSize(1 << 20);
  TensorClient client(Channel(arguments));
  absl::Status status = client.Put(Floats("big", 3 << 20, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("max_send_message_length"),
            absl::string_view::npos)
      << status;
}

TEST_F(TensorServiceTest, BudgetIsEnforcedAndNothingChanges) {
  Start(/*unlimited=*/true);
  TensorClient client(Channel(UnlimitedMessages()));
  ASSERT_TRUE(client.Put(Floats("a", 1, 7)).ok());
  absl::Status status = client.Put(Floats("a", 17 << 20, 1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("budget"), absl::string_view::npos);
  EXPECT_EQ(client.Get({"a"})->tensors[0].tensor.num_elements(), 1u);
}

TEST_F(TensorServiceTest, StockProtobufClientIsServed) {
  Start(/*unlimited=*/true);
  auto stub = v1::TensorExchange::NewStub(Channel({}));
  v1::Bundle bundle;
  v1::NamedTensor* named = bundle.add_tensors();
  named->set_name("x");
  named->mutable_tensor()->set_dtype(v1::DTYPE_UINT8);
  named->mutable_tensor()->add_shape(3);
  named->mutable_tensor()->set_data("abc");
  grpc::ClientContext put;
  v1::PutReply stored;
  ASSERT_TRUE(stub->Put(&put, bundle, &stored).ok());
  EXPECT_EQ(stored.stored_bytes(), TensorStore::kEntryBytes + 1 + 3);
  grpc::ClientContext get;
  v1::GetRequest request;
  request.add_names("x");
  v1::Bundle reply;
  ASSERT_TRUE(stub->Get(&get, request, &reply).ok());
  EXPECT_EQ(reply.tensors(0).tensor().data(), "abc");
}

TEST_F(TensorServiceTest, MalformedTensorIsRefusedWithAReason) {
  Start(/*unlimited=*/true);
  auto stub = v1::TensorExchange::NewStub(Channel({}));
  v1::Bundle bundle;
  bundle.add_tensors()->set_name("bad");
  bundle.mutable_tensors(0)->mutable_tensor()->set_dtype(v1::DTYPE_F32);
  bundle.mutable_tensors(0)->mutable_tensor()->add_shape(-1);
  grpc::ClientContext context;
  v1::PutReply reply;
  grpc::Status status = stub->Put(&context, bundle, &reply);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("bad"), std::string::npos);
}

}  // namespace
}  // namespace penstock::tensor
