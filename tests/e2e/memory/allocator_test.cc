// Tests penstock::Allocator: the memory of a message, and its lifetime.

#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/call.h"
#include "tests/e2e/raw.h"

namespace penstock::e2e {
namespace {

constexpr size_t kBytes = 3 << 20;

// Answers each call with a preset message.
class OneAnswer final : public grpc::CallbackGenericService {
 public:
  void Set(grpc::ByteBuffer answer) { answer_ = std::move(answer); }

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reactor(grpc::ByteBuffer answer) : answer_(std::move(answer)) {
      StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer answer_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    return new Reactor(answer_);
  }

  grpc::ByteBuffer answer_;
};

class AllocatorTest : public testing::TestWithParam<Fabric> {
 protected:
  AllocatorTest() {
    Options options;
    options.policy = Policy::kRequire;
    options.fabrics = {GetParam()};
    grpc::ServerBuilder builder;
    Enable(&builder, options);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    channel_ = grpc::CreateChannel(
        absl::StrCat("127.0.0.1:", port),
        Credentials(grpc::InsecureChannelCredentials(), options));
    // Makes a call first, because the first message of a connection may precede
    // the agreement on the path.
    service_.Set(ToBuffer("small"));
    EXPECT_EQ(Fetch().size(), 5u);
  }
  ~AllocatorTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  // Returns the slice that the client receives, or an empty slice on failure.
  grpc::Slice Fetch() {
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    Call call;
    auto reader =
        stub.PrepareUnaryCall(&call, kRawMethod, ToBuffer(""), &queue);
    grpc::ByteBuffer answer;
    grpc::Status status;
    reader->StartCall();
    reader->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    EXPECT_TRUE(status.ok()) << status.error_message();
    grpc::Slice slice;
    EXPECT_TRUE(!status.ok() || answer.TrySingleSlice(&slice).ok());
    return slice;
  }

  static bool IsFilled(const grpc::Slice& slice, size_t size, uint8_t with) {
    const std::vector<uint8_t> wanted(size, with);
    return slice.size() == size &&
           std::memcmp(slice.begin(), wanted.data(), size) == 0;
  }

  OneAnswer service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_P(AllocatorTest, MessageIsTheBufferOverShmAndACopyOverTcp) {
  Allocator::Buffer buffer = Allocator::Allocate(kBytes);
  ASSERT_TRUE(buffer);
  EXPECT_TRUE(buffer.is_pooled());
  std::memset(buffer.data(), 7, kBytes);
  grpc::Slice slice = buffer.ToSlice();
  service_.Set(grpc::ByteBuffer(&slice, 1));
  const grpc::Slice got = Fetch();
  ASSERT_TRUE(IsFilled(got, kBytes, 7));
  // Writes to the buffer, which programs must not do, to see if the receiver
  // shares the memory.
  buffer.data()[kBytes / 2] = 8;
  EXPECT_EQ(got.begin()[kBytes / 2], GetParam() == Fabric::kShm ? 8 : 7);
}

TEST_P(AllocatorTest, PartOfABufferIsAMessageToo) {
  Allocator::Buffer buffer = Allocator::Allocate(kBytes);
  ASSERT_TRUE(buffer);
  std::memset(buffer.data(), 1, kBytes);
  std::memset(buffer.data() + 1000, 2, 1 << 20);
  grpc::Slice slice = buffer.ToSlice().sub(1000, 1000 + (1 << 20));
  service_.Set(grpc::ByteBuffer(&slice, 1));
  EXPECT_TRUE(IsFilled(Fetch(), 1 << 20, 2));
}

TEST_P(AllocatorTest, BufferIsSharedUntilThePeerHasLetGo) {
  Allocator::Buffer buffer = Allocator::Allocate(kBytes);
  ASSERT_TRUE(buffer);
  EXPECT_FALSE(buffer.is_shared());
  std::memset(buffer.data(), 7, kBytes);
  {
    grpc::Slice slice = buffer.ToSlice();
    EXPECT_TRUE(buffer.is_shared());
    service_.Set(grpc::ByteBuffer(&slice, 1));
  }
  {
    const grpc::Slice got = Fetch();
    service_.Set(ToBuffer("small"));
    ASSERT_EQ(Fetch().size(), 5u);
    EXPECT_EQ(buffer.is_shared(), GetParam() == Fabric::kShm);
    EXPECT_TRUE(IsFilled(got, kBytes, 7));
  }
  // Waits until both sides have dropped the slice. The peer's release arrives
  // with one of the next messages.
  const auto end = In(kPatience);
  while (buffer.is_shared() && std::chrono::system_clock::now() < end) {
    ASSERT_EQ(Fetch().size(), 5u);
  }
  EXPECT_FALSE(buffer.is_shared());
}

TEST_P(AllocatorTest, SliceKeepsTheMemoryWithoutTheBuffer) {
  grpc::Slice slice;
  {
    Allocator::Buffer buffer = Allocator::Allocate(kBytes);
    ASSERT_TRUE(buffer);
    std::memset(buffer.data(), 9, kBytes);
    slice = buffer.ToSlice();
  }
  Allocator::Buffer other = Allocator::Allocate(kBytes);
  std::memset(other.data(), 1, kBytes);
  service_.Set(grpc::ByteBuffer(&slice, 1));
  EXPECT_TRUE(IsFilled(Fetch(), kBytes, 9));
}

TEST_P(AllocatorTest, MoreThanThePoolHasIsOrdinaryMemory) {
  std::vector<Allocator::Buffer> buffers;
  do {
    buffers.push_back(Allocator::Allocate(256 << 20));
    ASSERT_TRUE(buffers.back());
  } while (buffers.back().is_pooled() && buffers.size() < 100);
  EXPECT_FALSE(buffers.back().is_pooled());
  Allocator::Buffer small = Allocator::Allocate(kBytes);
  ASSERT_TRUE(small);
  std::memset(small.data(), 3, kBytes);
  grpc::Slice slice = small.ToSlice();
  service_.Set(grpc::ByteBuffer(&slice, 1));
  buffers.pop_back();
  EXPECT_TRUE(IsFilled(Fetch(), kBytes, 3));
}

TEST_P(AllocatorTest, WhatNoMachineHasIsNoBuffer) {
  EXPECT_FALSE(Allocator::Allocate(~size_t{0}));
  EXPECT_FALSE(Allocator::Allocate(size_t{1} << 60));
}

TEST_P(AllocatorTest, EmptyBufferIsAnEmptyMessage) {
  Allocator::Buffer buffer = Allocator::Allocate(0);
  ASSERT_TRUE(buffer);
  grpc::Slice slice = buffer.ToSlice();
  service_.Set(grpc::ByteBuffer(&slice, 1));
  EXPECT_EQ(Fetch().size(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Fabrics, AllocatorTest,
                         testing::Values(Fabric::kShm, Fabric::kTcp),
                         [](const auto& info) {
                           return info.param == Fabric::kShm ? "shm" : "tcp";
                         });

}  // namespace
}  // namespace penstock::e2e
