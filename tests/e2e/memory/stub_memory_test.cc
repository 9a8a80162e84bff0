// Tests PENSTOCK_STUB_MEMORY=pool, which is set for this program. Stubs'
// messages use shm without a copy. Over other paths nothing changes.

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/proto_buffer_writer.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/call.h"
#include "tests/e2e/raw.h"

namespace penstock::e2e {
namespace {

// Returns a SimpleRequest with a payload of this size, serialized by the code
// that generated stubs use.
grpc::ByteBuffer Serialized(size_t payload_bytes) {
  SimpleRequest message;
  message.mutable_payload()->set_body(Pattern(payload_bytes));
  grpc::ByteBuffer buffer;
  bool own_buffer = false;
  const grpc::Status status =
      grpc::SerializationTraits<SimpleRequest>::Serialize(message, &buffer,
                                                          &own_buffer);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return buffer;
}

grpc::Slice OnlySlice(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  EXPECT_TRUE(buffer.TrySingleSlice(&slice).ok());
  return slice;
}

class StubMemoryTest : public testing::TestWithParam<Fabric> {
 protected:
  StubMemoryTest() {
    Options options;
    options.policy = Policy::kRequire;
    options.fabrics = {GetParam()};
    grpc::ServerBuilder builder;
    Enable(&builder, options);
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.SetMaxReceiveMessageSize(-1);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    channel_ = grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", port),
        Credentials(grpc::InsecureChannelCredentials(), options), arguments);
    // Makes a call first, because the first message of a connection may precede
    // the agreement on the path.
    EXPECT_EQ(Echo(ToBuffer("small")).Length(), 5u);
  }
  ~StubMemoryTest() override {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }

  // Makes a call that returns the received memory.
  grpc::ByteBuffer Echo(const grpc::ByteBuffer& message) {
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    Call call;
    auto reader = stub.PrepareUnaryCall(&call, kRawMethod, message, &queue);
    grpc::ByteBuffer answer;
    grpc::Status status;
    reader->StartCall();
    reader->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    EXPECT_TRUE(status.ok()) << status.error_message();
    return answer;
  }

  // Returns true if the peer shares the memory of `slice`. Writes to the sent
  // memory to find out, which programs must not do.
  bool IsShared(const grpc::Slice& slice) {
    const grpc::ByteBuffer answer = Echo(grpc::ByteBuffer(&slice, 1));
    const grpc::Slice got = OnlySlice(service_.last());
    const size_t middle = slice.size() / 2;
    const uint8_t before = got.begin()[middle];
    const_cast<uint8_t*>(slice.begin())[middle] ^= 0xff;
    return got.begin()[middle] != before;
  }

  // Keeps the last message.
  class KeepingService final : public grpc::CallbackGenericService {
   public:
    grpc::ByteBuffer last() const { return last_; }

   private:
    class Reactor final : public grpc::ServerGenericBidiReactor {
     public:
      explicit Reactor(grpc::ByteBuffer* last) : last_(last) {
        StartRead(last_);
      }
      void OnReadDone(bool ok) override {
        if (!ok) return Finish(grpc::Status::CANCELLED);
        StartWriteAndFinish(last_, grpc::WriteOptions(), grpc::Status::OK);
      }
      void OnDone() override { delete this; }

     private:
      grpc::ByteBuffer* const last_;
    };
    grpc::ServerGenericBidiReactor* CreateReactor(
        grpc::GenericCallbackServerContext*) override {
      last_ = grpc::ByteBuffer();
      return new Reactor(&last_);
    }

    grpc::ByteBuffer last_;
  };

  KeepingService service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_P(StubMemoryTest, WhatAStubSerialisesIsSharedOverShmOnly) {
  const grpc::ByteBuffer message = Serialized(500 * 1000);
  EXPECT_EQ(IsShared(OnlySlice(message)), GetParam() == Fabric::kShm);
}

TEST_P(StubMemoryTest, SoIsASliceOfThatSize) {
  EXPECT_EQ(IsShared(grpc::Slice(size_t{16 * 1024})),
            GetParam() == Fabric::kShm);
}

TEST_P(StubMemoryTest, MessagesOfEverySizeArriveAsTheyWere) {
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{16 * 1024 - 20},
                       size_t{16 * 1024}, size_t{1 << 20}, size_t{5 << 20}}) {
    const grpc::ByteBuffer message = Serialized(bytes);
    EXPECT_EQ(ToBytes(Echo(message)), ToBytes(message)) << bytes;
  }
}

TEST_P(StubMemoryTest, WithAnExhaustedPoolMessagesComeFromTheHeap) {
  std::vector<Allocator::Buffer> taken;
  for (size_t bytes = 64 << 20; bytes >= 4096; bytes /= 2) {
    Allocator::Buffer buffer = Allocator::Allocate(bytes);
    for (; buffer.is_pooled(); buffer = Allocator::Allocate(bytes)) {
      taken.push_back(std::move(buffer));
    }
  }
  const grpc::ByteBuffer message = Serialized(500 * 1000);
  EXPECT_EQ(ToBytes(Echo(message)), ToBytes(message));
  EXPECT_FALSE(IsShared(OnlySlice(message)));
}

TEST_P(StubMemoryTest, SlicesOutliveWhoMadeThem) {
  grpc::Slice slice(size_t{100 * 1000});
  const grpc::ByteBuffer message(&slice, 1);
  slice = grpc::Slice();
  EXPECT_EQ(Echo(message).Length(), 100u * 1000);
}

// Returns true if the process shares the memory with its peers.
bool LiesInThePool(const grpc::Slice& slice) {
  const auto wanted = reinterpret_cast<uintptr_t>(slice.begin());
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end);
    if (begin <= wanted && wanted < end) {
      return absl::StrContains(line, "memfd:penstock");
    }
  }
  return false;
}

// Tests a forked child. In the child, the pool's lock may be held by a thread
// that does not exist there.
TEST_P(StubMemoryTest, ForkedChildrenTakeMemoryFromTheHeap) {
  EXPECT_TRUE(LiesInThePool(grpc::Slice(size_t{100 * 1000})));
  EXPECT_FALSE(LiesInThePool(grpc::Slice(size_t{1000})));
  const pid_t child = fork();
  if (child == 0) _exit(LiesInThePool(grpc::Slice(size_t{100 * 1000})) ? 1 : 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(Over, StubMemoryTest,
                         testing::Values(Fabric::kShm, Fabric::kTcp),
                         [](const auto& info) {
                           return info.param == Fabric::kShm ? "Shm" : "Tcp";
                         });

}  // namespace
}  // namespace penstock::e2e
