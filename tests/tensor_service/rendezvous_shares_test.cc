// Tests limits on one client's use of a rendezvous. The limits must leave room
// for other clients.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tensor_service/client.h"
#include "tensor_service/rendezvous.grpc.pb.h"
#include "tensor_service/rendezvous_client.h"
#include "tests/tensor_service/shares_test_util.h"

namespace penstock::tensor {
namespace {

using RendezvousSharesTest = SharesTest;

RendezvousKey Key(uint64_t step, const std::string& name) {
  return {step, name, "", ""};
}

v1::ReceiveRequest ReceiveOf(uint64_t step, const std::string& name) {
  v1::ReceiveRequest request;
  request.mutable_key()->set_step(step);
  request.mutable_key()->set_name(name);
  return request;
}

constexpr char kReceive[] = "/penstock.tensor.v1.TensorRendezvous/Receive";

TEST_F(RendezvousSharesTest, OneClientLeavesWaitersForTheNext) {
  std::vector<PendingReceive> pending;
  RendezvousClient greedy(Channel());
  std::atomic<int> refused{0};
  for (int i = 0; i < 30; ++i) {
    pending.push_back(
        greedy.Receive(Key(1, absl::StrCat(i)), [&refused](const auto& got) {
          if (absl::IsResourceExhausted(got.status())) ++refused;
        }));
  }
  EXPECT_TRUE(Becomes([&] { return refused == 20; }));
  EXPECT_EQ(table_.usage().waiters, 10u);
  RendezvousClient other(Channel());
  pending.push_back(other.Receive(Key(1, "x"), [](const auto&) {}));
  EXPECT_TRUE(Becomes([&] { return table_.usage().waiters == 11; }));
  table_.FinishStep(1);
  EXPECT_EQ(table_.usage().waiters, 0u);
}

TEST_F(RendezvousSharesTest, OneSenderLeavesRoomForTheNext) {
  RendezvousClient greedy(Channel());
  absl::Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) {
    status = greedy.Send(Key(1, absl::StrCat(i)), OfBytes(kMiB));
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LT(table_.usage().bytes, kBudget / 2);
  EXPECT_TRUE(
      RendezvousClient(Channel()).Send(Key(1, "x"), OfBytes(kMiB)).ok());
}

// Tests a client that stops reading. Without limits, a thousand receives of
// such a client take 1 GB.
TEST_F(RendezvousSharesTest, StoppedReceiverIsHandedNoMoreThanItsShare) {
  const auto stopped = Channel();
  std::vector<std::unique_ptr<Stalled>> receives;
  for (int i = 0; i < 10; ++i) {
    receives.push_back(std::make_unique<Stalled>(
        stopped, kReceive, ReceiveOf(1, absl::StrCat(i))));
  }
  ASSERT_TRUE(Becomes([&] { return table_.usage().waiters == 10; }));
  RendezvousClient sender(Channel());
  int sent = 0;
  absl::Status status;
  for (; sent < 10 && status.ok(); ++sent) {
    status = sender.Send(Key(1, absl::StrCat(sent)), OfBytes(2 * kMiB));
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "share")) << status;
  EXPECT_EQ(sent, 4);
  EXPECT_LE(table_.usage().bytes, kBudget / 2);
  // Expects that a client that reads its answers still gets tensors from the
  // same sender.
  RendezvousClient other(Channel());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(sender.Send(Key(2, "x"), OfBytes(2 * kMiB)).ok()) << i;
    ASSERT_TRUE(other.Receive(Key(2, "x")).ok()) << i;
    ASSERT_TRUE(Becomes([&] { return table_.usage().bytes <= kBudget / 2; }));
  }
  receives.clear();
  EXPECT_TRUE(TensorClient(stopped).List().ok());  // like above
  EXPECT_TRUE(Becomes([&] { return table_.usage().bytes == 0; }));
}

TEST_F(RendezvousSharesTest, StoppedReceiverIsRefusedWhatWaitsForIt) {
  ASSERT_TRUE(table_.Send(Key(1, "a"), OfBytes(6 * kMiB)).ok());
  ASSERT_TRUE(table_.Send(Key(1, "b"), OfBytes(6 * kMiB)).ok());
  const auto stopped = Channel();
  const Stalled first(stopped, kReceive, ReceiveOf(1, "a"));
  ASSERT_TRUE(Becomes([&] { return table_.usage().tensors == 1; }));
  EXPECT_EQ(RendezvousClient(stopped).Receive(Key(1, "b")).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(table_.usage().tensors, 1u) << "it waits for the next";
}

TEST_F(RendezvousSharesTest, OnlyWhoTakesPartEndsAStep) {
  RendezvousClient client(Channel());
  auto stranger = v1::TensorRendezvous::NewStub(Channel());
  const auto cancel = [&stranger](uint64_t step) {
    grpc::ClientContext context;
    v1::CancelStepRequest request;
    request.set_step(step);
    request.set_code(grpc::StatusCode::ABORTED);
    v1::CancelStepReply reply;
    return stranger->CancelStep(&context, request, &reply).error_code();
  };
  const auto finish = [&stranger](uint64_t step) {
    grpc::ClientContext context;
    v1::FinishStepRequest request;
    request.set_step(step);
    v1::FinishStepReply reply;
    return stranger->FinishStep(&context, request, &reply).error_code();
  };
  ASSERT_TRUE(client.Send(Key(1, "x"), OfBytes(1)).ok());
  for (const uint64_t step : {0, 1, 2}) {
    EXPECT_EQ(cancel(step), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_EQ(finish(step), grpc::StatusCode::PERMISSION_DENIED);
  }
  EXPECT_EQ(table_.usage().tensors, 1u);
  // Tests that a stock client counts as a member of the step in which it waits.
  {
    grpc::ClientContext context;
    v1::ReceiveReply reply;
    EXPECT_TRUE(stranger->Receive(&context, ReceiveOf(1, "x"), &reply).ok());
  }
  EXPECT_EQ(cancel(1), grpc::StatusCode::OK);
  EXPECT_EQ(cancel(2), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(client.FinishStep(1).ok());
  EXPECT_EQ(client.FinishStep(2).code(), absl::StatusCode::kPermissionDenied);
}

// Tests a member of the step whose connection has broken. The member must be
// able to cancel the step over a new connection.
TEST_F(RendezvousSharesTest, WhoTakesPartEndsTheStepByAnyConnection) {
  ASSERT_TRUE(RendezvousClient(Channel()).Send(Key(1, "x"), OfBytes(1)).ok());
  EXPECT_TRUE(RendezvousClient(Channel())
                  .CancelStep(1, absl::DataLossError("it broke"))
                  .ok());
  EXPECT_EQ(table_.usage().tensors, 0u);
}

}  // namespace
}  // namespace penstock::tensor
