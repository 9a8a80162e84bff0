// Tests tensors in Penstock's pool, which pass through a rendezvous in another
// process without a copy, from the sender to all receivers.

#include <chrono>
#include <cstring>
#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tensor_service/pool_allocator.h"
#include "tensor_service/rendezvous_client.h"
#include "tensor_service/rendezvous_service.h"
#include "tests/tensor_service/enabled_server.h"
#include "tests/tensor_service/same_memory.h"

namespace penstock::tensor {
namespace {

constexpr int64_t kBytes = 1 << 20;

Tensor InPool(uint8_t value) {
  Tensor tensor = *Tensor::Allocate(DType::kUint8, {kBytes},
                                    PoolAllocator<penstock::Allocator>());
  memset(tensor.buffer()->mutable_data(), value, kBytes);
  return tensor;
}

class RendezvousPoolTest : public testing::Test {
 protected:
  RendezvousPoolTest()
      : service_(MakeRendezvousService(&table_)),
        server_(service_.get(), Fabric::kShm),
        client_(std::make_unique<RendezvousClient>(server_.channel())) {
    EXPECT_TRUE(client_->Send({0, "x", "", ""}, Tensor()).ok());
    EXPECT_TRUE(client_->FinishStep(0).ok());
  }
  ~RendezvousPoolTest() override {
    table_.CancelAll(absl::UnavailableError("the test ends")).IgnoreError();
  }

  Rendezvous table_;
  std::unique_ptr<grpc::Service> service_;
  EnabledServer server_;
  std::unique_ptr<RendezvousClient> client_;
};

TEST_F(RendezvousPoolTest, ReceiverReadsWhereTheServersOwnSenderHasIt) {
  const Tensor sent = InPool(1);
  ASSERT_TRUE(table_.Send({1, "x", "", ""}, sent).ok());
  const auto got = client_->Receive({1, "x", "", ""});
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->tensor.bytes(), sent.bytes());
  EXPECT_TRUE(IsSameMemory(sent, got->tensor));
}

TEST_F(RendezvousPoolTest, TableKeepsTheSendersMemory) {
  const Tensor sent = InPool(2);
  ASSERT_TRUE(client_->Send({1, "x", "", ""}, sent).ok());
  const auto got = table_.Receive({1, "x", "", ""}, absl::ZeroDuration());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_TRUE(IsSameMemory(sent, got->tensor));
}

TEST_F(RendezvousPoolTest, OneCopyIsSharedByAllReceivers) {
  const Tensor sent = InPool(3);
  Rendezvous::SendOptions three;
  three.receivers = 3;
  ASSERT_TRUE(table_.Send({1, "x", "", ""}, sent, three).ok());
  for (int i = 0; i < 3; ++i) {
    const auto got = client_->Receive({1, "x", "", ""});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(IsSameMemory(sent, got->tensor)) << i;
  }
}

// Tests that memory counts against the service's budget while a receiver reads
// it.
TEST_F(RendezvousPoolTest, WhatReceiversReadCountsUntilTheyLetGo) {
  ASSERT_TRUE(table_.Send({1, "x", "", ""}, InPool(4)).ok());
  {
    const auto got = client_->Receive({1, "x", "", ""});
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(table_.usage().tensors, 0u);
    EXPECT_GE(table_.usage().bytes, static_cast<size_t>(kBytes));
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (table_.usage().bytes > 0) {
    ASSERT_LT(std::chrono::steady_clock::now(), end);
    std::this_thread::yield();
  }
}

}  // namespace
}  // namespace penstock::tensor
