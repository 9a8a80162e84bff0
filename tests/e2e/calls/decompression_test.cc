// Tests compressed messages whose decompressed size exceeds the receiver's
// limit. A megabyte could otherwise make the receiver allocate a gigabyte.

#include <sys/resource.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/generic/async_generic_service.h"
#include "gtest/gtest.h"
#include "tensor_service/status.h"
#include "tests/e2e/raw.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

constexpr size_t kMi = 1024 * 1024;
// The decompressed size of a bomb, in MiB. Above the limits of services and of
// tensors.
constexpr size_t kBombMi = 96;

// Returns zero bytes, which compress to about one megabyte.
grpc::ByteBuffer Zeroes(size_t mebibytes) {
  const std::vector<grpc::Slice> slices(mebibytes,
                                        grpc::Slice(std::string(kMi, '\0')));
  return grpc::ByteBuffer(slices.data(), slices.size());
}

// Returns this process's peak memory, in bytes.
size_t PeakBytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

struct CompressedCall : Call {
  CompressedCall() { set_compression_algorithm(GRPC_COMPRESS_GZIP); }
};

// Answers each call with one compressed message.
class CompressingService final : public grpc::CallbackGenericService {
 public:
  explicit CompressingService(size_t mebibytes) : answer_(Zeroes(mebibytes)) {}

 private:
  class Reactor final : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reactor(const grpc::ByteBuffer& answer) : answer_(answer) {
      StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
    }
    void OnDone() override { delete this; }

   private:
    const grpc::ByteBuffer answer_;
  };

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    return new Reactor(answer_);
  }

  const grpc::ByteBuffer answer_;
};

class DecompressionTest : public StackTest {
 protected:
  // Stops the server before its services are destroyed.
  ~DecompressionTest() override { StopServing(std::chrono::milliseconds(0)); }

  void ServeEcho(const Configure& configure = {}) {
    Serve(nullptr, [this, configure](grpc::ServerBuilder* builder) {
      builder->RegisterCallbackGenericService(&echo_);
      if (configure) configure(builder);
    });
  }

  // Returns the status of a message of zeroes, and checks the echo if the
  // status is OK.
  static grpc::Status Echo(const std::shared_ptr<grpc::Channel>& channel,
                           const grpc::ByteBuffer& message) {
    CompressedCall call;
    RawStream stream(channel, &call);
    (void)stream.Write(message);
    (void)stream.WritesDone();
    const absl::optional<std::string> echoed = stream.Read();
    const grpc::Status status = stream.Finish();
    if (status.ok()) {
      EXPECT_TRUE(echoed.has_value() && echoed->size() == message.Length());
    }
    return status;
  }

  RawEchoService echo_;
};

TEST_P(DecompressionTest, ServerTakesNoMoreThanItsLimit) {
  ServeEcho();
  ASSERT_TRUE(Echo(channel(), Zeroes(1)).ok());
  const size_t before = PeakBytes();
  const grpc::Status status = Echo(channel(), Zeroes(kBombMi));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << status.error_message();
  EXPECT_TRUE(absl::StrContains(status.error_message(),
                                "Received message larger than max"))
      << status.error_message();
  EXPECT_LT(PeakBytes() - before, 32 * kMi);
  EXPECT_TRUE(Echo(channel(), Zeroes(1)).ok()) << "others go on";
}

TEST_P(DecompressionTest, ClientTakesNoMoreThanItsLimit) {
  CompressingService service(kBombMi);
  Serve(nullptr, [&service](grpc::ServerBuilder* builder) {
    builder->RegisterCallbackGenericService(&service);
  });
  const size_t before = PeakBytes();
  Call call;
  RawStream stream(channel(), &call);
  EXPECT_EQ(stream.Read(), absl::nullopt);
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << status.error_message();
  EXPECT_TRUE(absl::StrContains(status.error_message(),
                                "Received message larger than max"))
      << status.error_message();
  EXPECT_LT(PeakBytes() - before, 32 * kMi);
  StopServing(std::chrono::seconds(1));
}

TEST_P(DecompressionTest, LimitIsExact) {
  ServeEcho();
  EXPECT_TRUE(Echo(channel(), Zeroes(4)).ok());
  EXPECT_EQ(
      Echo(channel(), ToBuffer(std::string(4 * kMi + 1, '\0'))).error_code(),
      grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_P(DecompressionTest, WhatComesIsWhatWasSent) {
  ServeEcho();
  CompressedCall call;
  RawStream stream(channel(), &call);
  for (const size_t size : {0, 1, 100, 1000, 10000, 100000, 3000000}) {
    const std::string sent = Pattern(size / 2) + std::string(size / 2, 'z');
    ASSERT_TRUE(stream.Write(sent));
    const absl::optional<std::string> echoed = stream.Read();
    EXPECT_TRUE(echoed.has_value() && *echoed == sent) << size << " bytes";
  }
  EXPECT_TRUE(stream.WritesDone());
  EXPECT_EQ(stream.Read(), absl::nullopt);
  EXPECT_TRUE(stream.Finish().ok());
}

// Tests a service of tensors. Messages of this service have no limit, but the
// memory of decompression must have one.
TEST_P(DecompressionTest, ServicesOfTensorsHaveALimitForThatToo) {
  ServeEcho([](grpc::ServerBuilder* builder) {
    tensor::AllowUnlimitedMessages(builder);
  });
  const auto unlimited = NewChannel(tensor::UnlimitedMessages());
  EXPECT_TRUE(Echo(unlimited, Zeroes(32)).ok());
  const grpc::Status refused = Echo(unlimited, Zeroes(kBombMi));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << refused.error_message();
  EXPECT_TRUE(absl::StrContains(refused.error_message(),
                                "penstock.max_decompressed_bytes"))
      << refused.error_message();
}

TEST_P(DecompressionTest, ClientsOfTensorsHaveALimitForThatToo) {
  CompressingService service(kBombMi);
  Serve(nullptr, [&service](grpc::ServerBuilder* builder) {
    builder->RegisterCallbackGenericService(&service);
  });
  const auto unlimited = NewChannel(tensor::UnlimitedMessages());
  Call call;
  RawStream stream(unlimited, &call);
  EXPECT_EQ(stream.Read(), absl::nullopt);
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << status.error_message();
  StopServing(std::chrono::seconds(1));
}

// Tests messages that become a few times longer by decompression. The receiver
// accepts every such message, because the sender has to send enough bytes
// itself.
TEST_P(DecompressionTest, WhatBecomesAFewTimesAsLongIsTaken) {
  ServeEcho([](grpc::ServerBuilder* builder) {
    tensor::AllowUnlimitedMessages(builder, /*max_decompressed_bytes=*/1000);
  });
  const auto unlimited = NewChannel(tensor::UnlimitedMessages());
  EXPECT_TRUE(Echo(unlimited, ToBuffer(Pattern(2 * kMi))).ok());
  EXPECT_EQ(Echo(unlimited, Zeroes(2)).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

INSTANTIATE_TEST_SUITE_P(Paths, DecompressionTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
