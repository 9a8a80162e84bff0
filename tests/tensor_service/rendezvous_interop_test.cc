// Tests stock gRPC code, which uses only rendezvous.proto, as the peer of our
// service and of our client. Also tests peers that send invalid messages.

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "tensor_service/calls.h"
#include "tensor_service/rendezvous.grpc.pb.h"
#include "tensor_service/rendezvous_client.h"
#include "tensor_service/rendezvous_service.h"

namespace penstock::tensor {
namespace {

using Result = absl::StatusOr<Rendezvous::Received>;

RendezvousKey Key(uint64_t step, const std::string& name) {
  return {step, name, "a", "b"};
}

v1::RendezvousKey StockKey(uint64_t step, const std::string& name) {
  v1::RendezvousKey key;
  key.set_step(step);
  key.set_name(name);
  key.set_source("a");
  key.set_destination("b");
  return key;
}

class RendezvousInteropTest : public testing::Test {
 protected:
  RendezvousInteropTest()
      : table_(std::make_unique<Rendezvous>()),
        service_(MakeRendezvousService(table_.get())) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
  }

  std::shared_ptr<grpc::Channel> Channel() const {
    return grpc::CreateChannel(absl::StrCat("127.0.0.1:", port_),
                               grpc::InsecureChannelCredentials());
  }

  RendezvousClient Client() const { return RendezvousClient(Channel()); }

  const std::unique_ptr<Rendezvous> table_;
  const std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

TEST_F(RendezvousInteropTest, StockStubSendsAndWeReceive) {
  auto stub = v1::TensorRendezvous::NewStub(Channel());
  v1::SendRequest request;
  *request.mutable_header()->mutable_key() = StockKey(1, "x");
  v1::Tensor* tensor = request.add_tensors()->mutable_tensor();
  tensor->set_dtype(v1::DTYPE_UINT8);
  tensor->add_shape(3);
  tensor->set_data("abc");
  grpc::ClientContext context;
  v1::SendReply reply;
  ASSERT_TRUE(stub->Send(&context, request, &reply).ok());
  const Result got = Client().Receive(Key(1, "x"));
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->tensor.bytes(), "abc");
  EXPECT_FALSE(got->is_dead);
  EXPECT_EQ(table_->usage().tensors, 0u) << "not set is one receiver";
}

TEST_F(RendezvousInteropTest, WeSendAndStockStubReceives) {
  Rendezvous::SendOptions dead;
  dead.is_dead = true;
  ASSERT_TRUE(
      Client()
          .Send(Key(1, "x"), *Tensor::Of<uint8_t>({2}, {'h', 'i'}), dead)
          .ok());
  auto stub = v1::TensorRendezvous::NewStub(Channel());
  v1::ReceiveRequest request;
  *request.mutable_key() = StockKey(1, "x");
  grpc::ClientContext context;
  v1::ReceiveReply reply;
  ASSERT_TRUE(stub->Receive(&context, request, &reply).ok());
  ASSERT_EQ(reply.tensors_size(), 1);
  EXPECT_EQ(reply.tensors(0).tensor().data(), "hi");
  EXPECT_EQ(reply.tensors(0).tensor().shape(0), 2);
  EXPECT_TRUE(reply.header().is_dead());
}

TEST_F(RendezvousInteropTest, BadSendsOfAStockStubAreRefused) {
  auto stub = v1::TensorRendezvous::NewStub(Channel());
  const auto send = [&stub](const v1::SendRequest& request) {
    grpc::ClientContext context;
    v1::SendReply reply;
    return stub->Send(&context, request, &reply).error_code();
  };
  v1::SendRequest none;
  *none.mutable_header()->mutable_key() = StockKey(1, "x");
  EXPECT_EQ(send(none), grpc::StatusCode::INVALID_ARGUMENT);
  v1::SendRequest dead = none;
  dead.mutable_header()->set_is_dead(true);
  dead.mutable_header()->set_receivers(0);
  EXPECT_EQ(send(dead), grpc::StatusCode::INVALID_ARGUMENT);
  dead.mutable_header()->set_receivers(~0u);
  EXPECT_EQ(send(dead), grpc::StatusCode::INVALID_ARGUMENT);
  v1::SendRequest nameless = dead;
  nameless.mutable_header()->clear_key();
  EXPECT_EQ(send(nameless), grpc::StatusCode::INVALID_ARGUMENT);
  v1::SendRequest two = none;
  for (int i = 0; i < 2; ++i) {
    two.add_tensors()->mutable_tensor()->set_dtype(v1::DTYPE_F32);
    two.mutable_tensors(i)->mutable_tensor()->add_shape(0);
  }
  EXPECT_EQ(send(two), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(table_->usage().tensors, 0u);
  dead.mutable_header()->clear_receivers();
  EXPECT_EQ(send(dead), grpc::StatusCode::OK);
}

TEST_F(RendezvousInteropTest, GarbageIsRefused) {
  grpc::Slice garbage(std::string("\x12\xff\xff\xff"));
  const grpc::ByteBuffer bytes(&garbage, 1);
  CallQueue queue;
  for (const char* method :
       {"Send", "Receive", "Exchange", "CancelStep", "FinishStep"}) {
    queue.Start(Channel(),
                absl::StrCat("/penstock.tensor.v1.TensorRendezvous/", method),
                bytes, absl::Minutes(1));
  }
  for (const CallQueue::Result& result : queue.Wait()) {
    EXPECT_FALSE(result.status.ok());
    EXPECT_NE(result.status.code(), absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_EQ(table_->usage().waiters, 0u);
}

TEST_F(RendezvousInteropTest, ExchangeWithABadKeySendsNothing) {
  auto stub = v1::TensorRendezvous::NewStub(Channel());
  v1::RendezvousExchangeRequest request;
  *request.mutable_header()->mutable_send()->mutable_key() = StockKey(1, "x");
  request.mutable_header()->mutable_send()->set_is_dead(true);
  grpc::ClientContext context;
  v1::ReceiveReply reply;
  EXPECT_EQ(stub->Exchange(&context, request, &reply).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(table_->usage().tensors, 0u);
}

TEST_F(RendezvousInteropTest, CodesThatAreNoErrorsAreRefused) {
  auto stub = v1::TensorRendezvous::NewStub(Channel());
  for (const uint32_t code : {0u, 17u, 0xffffffffu}) {
    grpc::ClientContext context;
    v1::CancelStepRequest request;
    request.set_step(0);
    request.set_code(code);
    v1::CancelStepReply reply;
    EXPECT_EQ(stub->CancelStep(&context, request, &reply).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  const Tensor one = *Tensor::Of<uint8_t>({1}, {1});
  EXPECT_TRUE(Client().Send(Key(0, "x"), one).ok()) << "the step goes on";
}

// Tests a request without any field. Such a request is a mistake, and must not
// end step 0.
TEST_F(RendezvousInteropTest, RequestWithoutAStepEndsNone) {
  auto stub = v1::TensorRendezvous::NewStub(Channel());
  const Tensor one = *Tensor::Of<uint8_t>({1}, {1});
  ASSERT_TRUE(Client().Send(Key(0, "x"), one).ok());
  {
    grpc::ClientContext context;
    v1::FinishStepReply reply;
    EXPECT_EQ(stub->FinishStep(&context, {}, &reply).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  {
    grpc::ClientContext context;
    v1::CancelStepRequest request;
    request.set_code(grpc::StatusCode::ABORTED);
    v1::CancelStepReply reply;
    EXPECT_EQ(stub->CancelStep(&context, request, &reply).error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_EQ(table_->usage().tensors, 1u);
  EXPECT_TRUE(Client().FinishStep(0).ok());
  EXPECT_EQ(table_->usage().tensors, 0u);
}

}  // namespace
}  // namespace penstock::tensor
