// Tests that each end of a call, on either side, also ends the call's wait for
// bytes from a device. The device may never produce these bytes.

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/transport/grpc/device_slices_test_util.h"

namespace penstock::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr std::chrono::seconds kPatience{10};

bool Soon(const std::atomic<bool>& happens) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!happens && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  return happens;
}

// A service that answers with memory that the device has not written yet.
class SlowAnswerService final : public grpc::CallbackGenericService {
 public:
  Producer producer;
  std::atomic<bool> was_cancelled{false};
  std::atomic<bool> has_written{false};
  std::atomic<bool> is_done{false};

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reactor(SlowAnswerService* service) : service_(service) {
      StartRead(&message_);
    }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::CANCELLED);
      message_ = MessageOf({OnDevice(Device()->Put(Pattern(kLarge)),
                                     service_->producer.AsPoll())});
      StartWrite(&message_);
    }
    void OnWriteDone(bool) override {
      service_->has_written = true;
      Finish(grpc::Status::OK);
    }
    void OnCancel() override { service_->was_cancelled = true; }
    void OnDone() override {
      service_->is_done = true;
      delete this;
    }

   private:
    SlowAnswerService* const service_;
    grpc::ByteBuffer message_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    return new Reactor(this);
  }
};

// A service that ends each call at once.
class RefusingService final : public grpc::CallbackGenericService {
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    Reactor() {
      Finish(grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "no"));
    }
    void OnDone() override { delete this; }
  };
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    return new Reactor;
  }
};

// A completion queue whose operations the test awaits.
class Queue {
 public:
  ~Queue() {
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  grpc::CompletionQueue* get() { return &queue_; }
  // Waits for `count` operations. Returns the number of operations that have
  // ended.
  int Await(int count) {
    void* tag = nullptr;
    bool ok = false;
    int ended = 0;
    while (ended < count &&
           queue_.AsyncNext(&tag, &ok, system_clock::now() + kPatience) ==
               grpc::CompletionQueue::GOT_EVENT) {
      ++ended;
    }
    return ended;
  }

 private:
  grpc::CompletionQueue queue_;
};

class DeviceWaitEndTest : public DeviceSlicesTest {
 protected:
  static grpc::ByteBuffer MessageAfter(Producer* producer) {
    return MessageOf(
        {OnDevice(Device()->Put(Pattern(kLarge)), producer->AsPoll())});
  }
  // Starts a call, and returns while its answer waits for the device at the
  // server.
  std::unique_ptr<RawStream> CallSlowly(SlowAnswerService* service,
                                        grpc::ClientContext* context) {
    ServeGeneric(service);
    auto stream = std::make_unique<RawStream>(channel(), context);
    stream->Write("go");
    service->producer.AwaitAsked(3);
    return stream;
  }
  // Expects that the server's write ends although its device is not ready.
  static void ExpectWriteEnds(SlowAnswerService* service) {
    EXPECT_TRUE(Soon(service->has_written)) << "the handler's write hangs";
    service->producer.ready = true;
    EXPECT_TRUE(Soon(service->is_done));
  }
  // Makes a whole call in one batch. The batch's message waits for a device.
  static grpc::Status CallOnce(const std::shared_ptr<grpc::Channel>& channel) {
    Producer never;
    grpc::ClientContext context;
    context.set_deadline(system_clock::now() + milliseconds(300));
    grpc::ByteBuffer answer;
    grpc::Status status(grpc::StatusCode::UNKNOWN, "has not ended");
    Queue queue;
    const auto call = grpc::GenericStub(channel).PrepareUnaryCall(
        &context, kRawMethod, MessageAfter(&never), queue.get());
    call->StartCall();
    call->Finish(&answer, &status, nullptr);
    EXPECT_EQ(queue.Await(1), 1) << "the call hangs";
    never.ready = true;
    return status;
  }
};

TEST_P(DeviceWaitEndTest, CancellationEndsTheServersWait) {
  SlowAnswerService service;
  grpc::ClientContext context;
  const auto stream = CallSlowly(&service, &context);
  context.TryCancel();
  stream->Finish();
  EXPECT_TRUE(Soon(service.was_cancelled));
  ExpectWriteEnds(&service);
}

TEST_P(DeviceWaitEndTest, DeadlineEndsTheServersWait) {
  SlowAnswerService service;
  grpc::ClientContext context;
  context.set_deadline(system_clock::now() + milliseconds(1000));
  const auto stream = CallSlowly(&service, &context);
  EXPECT_FALSE(stream->Read().has_value());
  stream->Finish();
  ExpectWriteEnds(&service);
}

TEST_P(DeviceWaitEndTest, ShutdownEndsTheServersWait) {
  SlowAnswerService service;
  grpc::ClientContext context;
  const auto stream = CallSlowly(&service, &context);
  std::atomic<bool> has_stopped{false};
  std::thread stop([&] {
    server()->Shutdown(system_clock::now());
    has_stopped = true;
  });
  EXPECT_TRUE(Soon(has_stopped)) << "Server::Shutdown() hangs";
  service.producer.ready = true;
  stop.join();
  stream->Finish();
}

TEST_P(DeviceWaitEndTest, DeadlineEndsAUnaryCall) {
  ServeGeneric(&echo_);
  EXPECT_EQ(CallOnce(channel()).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
}

// Tests an in-process channel. Such a channel handles deadlines below the
// filter that waits.
TEST_P(DeviceWaitEndTest, DeadlineEndsAnInProcessCall) {
  ServeGeneric(&echo_);
  EXPECT_EQ(CallOnce(server()->InProcessChannel(grpc::ChannelArguments()))
                .error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_P(DeviceWaitEndTest, StatusEndsTheClientsWait) {
  RefusingService service;
  ServeGeneric(&service);
  Producer never;
  grpc::ClientContext context;
  grpc::Status status;
  {
    Queue queue;
    auto stream = grpc::GenericStub(channel()).PrepareCall(&context, kRawMethod,
                                                           queue.get());
    stream->StartCall(nullptr);
    ASSERT_EQ(queue.Await(1), 1);
    stream->Write(MessageAfter(&never), nullptr);
    stream->Finish(&status, nullptr);
    EXPECT_EQ(queue.Await(2), 2) << "the write hangs";
    never.ready = true;
  }
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  StopServing(milliseconds(0));
}

// Tests initial metadata that waits together with the first message. A read
// waits for both.
TEST_P(DeviceWaitEndTest, CorkedCallEnds) {
  ServeGeneric(&echo_);
  for (const grpc::StatusCode how :
       {grpc::StatusCode::DEADLINE_EXCEEDED, grpc::StatusCode::CANCELLED,
        grpc::StatusCode::DATA_LOSS}) {
    SCOPED_TRACE(how);
    std::atomic<int> asked{0};
    std::atomic<bool> fails{false};
    const auto poll = [&]() -> absl::optional<absl::Status> {
      ++asked;
      if (!fails) return absl::nullopt;
      return absl::DataLossError("the kernel failed");
    };
    grpc::ClientContext context;
    context.set_initial_metadata_corked(true);
    if (how == grpc::StatusCode::DEADLINE_EXCEEDED) {
      context.set_deadline(system_clock::now() + milliseconds(300));
    }
    grpc::ByteBuffer answer;
    grpc::Status status;
    {
      Queue queue;
      auto stream = grpc::GenericStub(channel()).PrepareCall(
          &context, kRawMethod, queue.get());
      stream->StartCall(nullptr);
      stream->Write(MessageOf({OnDevice(Device()->Put(Pattern(kLarge)), poll)}),
                    nullptr);
      stream->Read(&answer, nullptr);
      stream->Finish(&status, nullptr);
      while (asked < 3) std::this_thread::yield();
      if (how == grpc::StatusCode::CANCELLED) context.TryCancel();
      if (how == grpc::StatusCode::DATA_LOSS) fails = true;
      EXPECT_EQ(queue.Await(3), 3);
      fails = true;
    }
    EXPECT_EQ(status.error_code(), how);
  }
}

// Ends the waits of clients and server in random ways.
TEST_P(DeviceWaitEndTest, RandomEnds) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 20; ++round) {
    SlowAnswerService service;
    ServeGeneric(&service);
    const auto shared = NewChannel();
    std::vector<std::thread> clients;
    for (int i = 0; i < 6; ++i) {
      clients.emplace_back([&shared,
                            random = std::mt19937(random())]() mutable {
        grpc::ClientContext context;
        if (random() % 3 == 0) {
          context.set_deadline(system_clock::now() +
                               milliseconds(random() % 30));
        }
        Producer producer;
        std::thread other([&, wait = random() % 20000, what = random() % 3] {
          std::this_thread::sleep_for(std::chrono::microseconds(wait));
          if (what != 0) producer.ready = true;
          if (what != 1) context.TryCancel();
        });
        RawStream stream(shared, &context);
        stream.Write(MessageAfter(&producer));
        stream.WritesDone();
        if (random() % 2 == 0) {
          while (stream.Read().has_value()) {
          }
        }
        other.join();
        context.TryCancel();
        stream.Finish();
      });
    }
    std::this_thread::sleep_for(milliseconds(random() % 25));
    if (random() % 2 == 0) service.producer.ready = true;
    if (random() % 3 == 0) server()->Shutdown(system_clock::now());
    std::this_thread::sleep_for(milliseconds(30));
    service.producer.ready = true;
    for (std::thread& client : clients) client.join();
    StopServing(milliseconds(0));
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, DeviceWaitEndTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
