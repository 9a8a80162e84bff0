// Tests messages whose bytes a device has not produced yet. Neither threads nor
// other calls may wait for these bytes.

#include <atomic>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "grpcpp/generic/async_generic_service.h"
#include "gtest/gtest.h"
#include "tests/transport/grpc/device_slices_test_util.h"

namespace penstock::e2e {
namespace {

using DeviceWaitTest = DeviceSlicesTest;

TEST_P(DeviceWaitTest, BytesAreReadOnceTheyAreThere) {
  ServeGeneric(&echo_);
  for (int i = 0; i < 10; ++i) {
    const memory::Bytes buffer = Device()->Put(std::string(kLarge, 'Z'));
    const std::string bytes = Pattern(kLarge, i + 1);
    Producer producer;
    std::thread kernel([&] {
      producer.AwaitAsked(3);
      EXPECT_TRUE(
          Device()
              ->CopyFromHost({reinterpret_cast<const uint8_t*>(bytes.data()),
                              bytes.size()},
                             const_cast<uint8_t*>(buffer.data))
              .ok());
      producer.ready = true;
    });
    std::string echo;
    EXPECT_TRUE(
        Send(channel(), MessageOf({OnDevice(buffer, producer.AsPoll())}), &echo)
            .ok());
    EXPECT_TRUE(echo == bytes);
    kernel.join();
  }
}

TEST_P(DeviceWaitTest, DeadlineEndsTheWaitForBytes) {
  ServeGeneric(&echo_);
  Producer never;
  const auto begin = std::chrono::steady_clock::now();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::milliseconds(300));
  {
    RawStream stream(channel(), &context);
    EXPECT_FALSE(stream.Write(
        MessageOf({OnDevice(Device()->Put(Pattern(kLarge)), never.AsPoll())})));
    EXPECT_EQ(stream.Finish().error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  std::string echo;
  ASSERT_TRUE(Send(channel(), ToBuffer("next"), &echo).ok());
  EXPECT_EQ(echo, "next");
  // Expects that the device is no longer polled.
  const auto patience =
      std::chrono::steady_clock::now() + std::chrono::seconds(20);
  for (int last = -1; last != never.asked;) {
    ASSERT_LT(std::chrono::steady_clock::now(), patience);
    last = never.asked;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

TEST_P(DeviceWaitTest, CancelledWhileAnswersWaitForBytes) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  ServeGeneric(&echo_);
  for (int i = 0; i < 50; ++i) {
    Producer producer;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(60));
    std::thread other([&, microseconds = random() % 3000] {
      std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
      if (i % 2 == 0) producer.ready = true;
      context.TryCancel();
      producer.ready = true;
    });
    RawStream stream(channel(), &context);
    stream.Write(MessageOf(
        {OnDevice(Device()->Put(Pattern(kLarge)), producer.AsPoll())}));
    stream.WritesDone();
    while (stream.Read().has_value()) {
    }
    const grpc::Status status = stream.Finish();
    EXPECT_TRUE(status.ok() ||
                status.error_code() == grpc::StatusCode::CANCELLED)
        << status.error_message();
    other.join();
  }
}

// A service that sends its answer from the device, after another call has sent
// "go".
class GoService final : public grpc::CallbackGenericService {
 public:
  Producer producer;

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reactor(GoService* service) : service_(service) {
      StartRead(&message_);
    }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::OK);
      if (ToBytes(message_) == "go") {
        service_->producer.ready = true;
      } else {
        message_ = MessageOf({OnDevice(Device()->Put(Pattern(kLarge)),
                                       service_->producer.AsPoll())});
      }
      StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    GoService* const service_;
    grpc::ByteBuffer message_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    return new Reactor(this);
  }
};

// Tests many answers that wait. They must hold no threads: the awaited bytes
// may depend on another call, and that call needs a thread.
TEST_P(DeviceWaitTest, AnswersThatWaitHoldUpNoOtherCall) {
  GoService service;
  ServeGeneric(&service);
  const auto waits = channel();
  std::vector<std::thread> clients;
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back([waits] {
      std::string echo;
      const grpc::Status status = Send(waits, ToBuffer("wait"), &echo);
      EXPECT_TRUE(status.ok()) << status.error_message();
      EXPECT_TRUE(echo == Pattern(kLarge));
    });
  }
  service.producer.AwaitAsked(40);
  std::string echo;
  EXPECT_TRUE(Send(channel(), ToBuffer("go"), &echo).ok());
  for (std::thread& client : clients) client.join();
  StopServing(std::chrono::milliseconds(0));
}

TEST_P(DeviceWaitTest, ErrorOfTheProducerIsTheCallsStatus) {
  ServeGeneric(&echo_);
  const grpc::ByteBuffer message = MessageOf(
      {grpc::Slice("head"), OnDevice(Device()->Put(Pattern(kLarge)), [] {
         return absl::DataLossError("the kernel failed");
       })});
  std::string echo;
  const grpc::Status status = Send(channel(), message, &echo);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(status.error_message(), "the kernel failed");
  ASSERT_TRUE(Send(channel(), ToBuffer("next"), &echo).ok());
  EXPECT_EQ(echo, "next");
}

INSTANTIATE_TEST_SUITE_P(Paths, DeviceWaitTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
