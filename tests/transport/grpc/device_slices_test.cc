// Tests messages with slices in device memory over every path. Each peer must
// get the bytes, or the call must get an error.

#include "penstock/device_slices.h"

#include <chrono>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "penstock/destinations.h"
#include "tests/transport/grpc/device_slices_test_util.h"

namespace penstock::e2e {
namespace {

// A service that answers with the message's bytes in device slices.
class DeviceEchoService final : public grpc::CallbackGenericService {
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    Reactor() { StartRead(&message_); }
    void OnReadDone(bool ok) override {
      if (!ok) return Finish(grpc::Status::OK);
      message_ = MessageOf({grpc::Slice("head"), OnDevice(ToBytes(message_)),
                            grpc::Slice("tail")});
      StartWrite(&message_);
    }
    void OnWriteDone(bool ok) override {
      if (ok) return StartRead(&message_);
      Finish(grpc::Status(grpc::StatusCode::ABORTED, "cannot answer"));
    }
    void OnDone() override { delete this; }

   private:
    grpc::ByteBuffer message_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext*) override {
    return new Reactor;
  }
};

// Returns the bytes of the message's slices. Sets `*on_device` to the number of
// slices on the device.
std::string BytesAnywhere(const grpc::ByteBuffer& message, size_t* on_device) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(message.Dump(&slices).ok());
  std::string bytes;
  *on_device = 0;
  for (const grpc::Slice& slice : slices) {
    if (memory::FindDevice(slice.begin()) == nullptr) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
      continue;
    }
    ++*on_device;
    bytes += Device()->Get({slice.begin(), slice.size()});
  }
  return bytes;
}

TEST_P(DeviceSlicesTest, ServerGetsTheBytesOfAnyMixture) {
  ServeGeneric(&echo_);
  const unsigned seed = std::random_device()();
  std::mt19937 random(seed);
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  const std::vector<size_t> sizes = {0,     1,     100,    65535,
                                     65536, 65537, kLarge, 700 * 1000};
  for (int i = 0; i < 30; ++i) {
    std::vector<grpc::Slice> slices;
    std::string expected;
    for (unsigned count = random() % 6; count > 0; --count) {
      const std::string bytes =
          Pattern(sizes[random() % sizes.size()], random() % 100 + 1);
      const bool on_device = !bytes.empty() && random() % 2 == 0;
      slices.push_back(on_device ? OnDevice(bytes) : grpc::Slice(bytes));
      expected += bytes;
    }
    std::string echo;
    const grpc::Status status =
        Send(channel(), MessageOf(std::move(slices)), &echo,
             i % 5 == 4 ? GRPC_COMPRESS_GZIP : GRPC_COMPRESS_NONE);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_TRUE(echo == expected) << "message " << i;
  }
  ExpectPath(*channel());
}

TEST_P(DeviceSlicesTest, ClientGetsTheBytes) {
  DeviceEchoService service;
  ServeGeneric(&service);
  for (const size_t size : {size_t{100}, kLarge, size_t{3} << 20}) {
    std::string echo;
    ASSERT_TRUE(Send(channel(), ToBuffer(Pattern(size)), &echo).ok());
    EXPECT_TRUE(echo == "head" + Pattern(size) + "tail") << size;
  }
}

// Tests a peer that cannot open device memory. Over shared memory, the first
// message is read over the connection, and later messages are copied. In both
// cases, the call and the path must survive.
TEST_P(DeviceSlicesTest, PeerThatCannotOpenThemGetsTheBytes) {
  DeviceEchoService service;
  ServeGeneric(&service);
  Device()->FailOpens(absl::NotFoundError("no such device here"));
  for (int i = 0; i < 3; ++i) {
    std::string echo;
    ASSERT_TRUE(
        Send(channel(), MessageOf({OnDevice(Pattern(kLarge))}), &echo).ok());
    EXPECT_TRUE(echo == "head" + Pattern(kLarge) + "tail") << i;
  }
  Device()->FailOpens(absl::OkStatus());
  ExpectPath(*channel());
}

TEST_P(DeviceSlicesTest, ChannelThatCompressesReadsThem) {
  ServeGeneric(&echo_);
  grpc::ChannelArguments arguments;
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_GZIP);
  const std::string bytes(kLarge, 'c');
  std::string echo;
  ASSERT_TRUE(
      Send(NewChannel(arguments), MessageOf({OnDevice(bytes)}), &echo).ok());
  EXPECT_TRUE(echo == bytes);
}

TEST_P(DeviceSlicesTest, ChannelThatCompressesByNameReadsThem) {
  ServeGeneric(&echo_);
  grpc::ChannelArguments arguments;
  arguments.SetString("grpc.default_compression_algorithm", "gzip");
  const std::string bytes(kLarge, 'c');
  std::string echo;
  ASSERT_TRUE(
      Send(NewChannel(arguments), MessageOf({OnDevice(bytes)}), &echo).ok());
  EXPECT_TRUE(echo == bytes);
}

// Makes either side's copy fail. The call must end with an error, and the
// connection must survive.
TEST_P(DeviceSlicesTest, CopyThatFailsEndsTheCall) {
  ServeGeneric(&echo_);
  Device()->FailCopies(absl::InternalError("cuMemcpy: illegal address"));
  std::string echo;
  const auto begin = std::chrono::steady_clock::now();
  const grpc::Status status =
      Send(channel(), MessageOf({OnDevice(Pattern(kLarge))}), &echo);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(status.error_message(), "cuMemcpy: illegal address");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
  Device()->FailCopies(absl::OkStatus());
  ASSERT_TRUE(
      Send(channel(), MessageOf({OnDevice(Pattern(kLarge))}), &echo).ok());
  EXPECT_TRUE(echo == Pattern(kLarge));
}

TEST_P(DeviceSlicesTest, ServersCopyThatFailsEndsTheCall) {
  DeviceEchoService service;
  ServeGeneric(&service);
  std::string echo;
  ASSERT_TRUE(Send(channel(), ToBuffer("before"), &echo).ok());
  Device()->FailCopies(absl::InternalError("cuMemcpy: illegal address"));
  const grpc::Status status = Send(channel(), ToBuffer(Pattern(kLarge)), &echo);
  // Expects the error of the copy, whatever status the handler gives.
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INTERNAL);
  EXPECT_EQ(status.error_message(), "cuMemcpy: illegal address");
  Device()->FailCopies(absl::OkStatus());
  EXPECT_TRUE(Send(channel(), ToBuffer("after"), &echo).ok());
}

struct Answer {
  std::string bytes;
  size_t on_device = 0;  // slices of the answer on a device
  int copies = 0;        // bytes of device memory, on both sides, in this call
};

// Makes a call that accepts device slices and sends two slices: `large` and a
// short slice. Expects success.
Answer EchoAccepting(const std::shared_ptr<grpc::Channel>& channel,
                     const std::string& large) {
  const auto anywhere = Destinations::Make(
      {}, nullptr, Destinations::Use::kOnce, Destinations::Slices::kAnywhere);
  Answer answer;
  grpc::ClientContext context;
  context.set_deadline(In(std::chrono::seconds(60)));
  grpc::CompletionQueue queue;
  grpc::ByteBuffer message;
  grpc::Status status;
  const auto call = grpc::GenericStub(channel).PrepareUnaryCall(
      &context, "/penstock.e2e.Accepting/Echo",
      MessageOf({grpc::Slice("head"), OnDevice(large), OnDevice("short")}),
      &queue);
  anywhere->AttachTo(&context);
  const int before = Device()->copies();
  call->StartCall();
  call->Finish(&message, &status, nullptr);
  void* tag;
  bool ok;
  EXPECT_TRUE(queue.Next(&tag, &ok));
  EXPECT_TRUE(status.ok()) << status.error_message();
  if (!status.ok()) return answer;
  answer.copies = Device()->copies() - before;
  answer.bytes = BytesAnywhere(message, &answer.on_device);
  return answer;
}

// Tests that slices stay on the device in both directions over shared memory.
TEST_P(DeviceSlicesTest, CallsThatAcceptThemGetThemWhereThePathBringsThem) {
  ServeGeneric(&echo_);
  AcceptDeviceSlices("/penstock.e2e.Accepting/");
  const std::string large = Pattern(kLarge);
  const size_t expected = GetParam() == Path::kShm ? 1 : 0;
  // Tries repeatedly. The server may read a call from the path before it
  // learns, over the connection, that the client uses the path. The server then
  // copies the answer.
  const auto limit = In(kPatience);
  while (EchoAccepting(channel(), large).on_device < expected) {
    ASSERT_LT(std::chrono::system_clock::now(), limit);
  }
  for (int i = 0; i < 10; ++i) {
    const Answer answer = EchoAccepting(channel(), large);
    EXPECT_TRUE(answer.bytes == "head" + large + "short");
    EXPECT_EQ(answer.on_device, expected);
    EXPECT_EQ(answer.copies, expected > 0 ? 1 : 2) << "what is short is copied";
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, DeviceSlicesTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
