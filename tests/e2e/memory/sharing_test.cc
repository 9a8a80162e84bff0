// Tests Options::shm_sharing and PENSTOCK_SHM_SHARING, on either side.

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/call.h"
#include "tests/e2e/child.h"
#include "tests/e2e/raw.h"
#include "tests/e2e/stack.h"
#include "tests/e2e/test_service.h"

namespace penstock::e2e {
namespace {

using testing::HasSubstr;

constexpr ShmSharing kInPlace = ShmSharing::kSameUid;
constexpr ShmSharing kCopy = ShmSharing::kCopy;
constexpr ShmSharing kOff = ShmSharing::kOff;

Options With(ShmSharing sharing) {
  Options options;
  options.policy = Policy::kPrefer;
  options.fabrics = {Fabric::kShm, Fabric::kTcp};
  options.shm_sharing = sharing;
  return options;
}

// Returns true if `address` is in a mapped memory file of this process.
bool IsShared(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end);
    if (begin <= wanted && wanted < end) {
      return absl::StrContains(line, "memfd:");
    }
  }
  return false;
}

bool TouchesSharedMemory(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  EXPECT_TRUE(message.Dump(&slices).ok());
  for (const grpc::Slice& slice : slices) {
    if (IsShared(slice.begin())) return true;
  }
  return false;
}

class SharingTest : public testing::Test {
 protected:
  ~SharingTest() override { Stop(); }

  void Stop() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
    server_.reset();
  }

  void Start(ShmSharing of_server, const Options& of_client) {
    Stop();
    service_ = std::make_unique<RawEchoService>();
    grpc::ServerBuilder builder;
    Enable(&builder, With(of_server));
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port);
    builder.RegisterCallbackGenericService(service_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
    channel_ = grpc::CreateChannel(
        absl::StrCat("127.0.0.1:", port),
        Credentials(grpc::InsecureChannelCredentials(), of_client));
  }
  void Start(ShmSharing of_server, ShmSharing of_client) {
    Start(of_server, With(of_client));
  }

  // Expects that messages of each kind are echoed.
  void ExpectEchoes() {
    Call call;
    RawStream stream(channel_, &call);
    unsigned seed = 0;
    for (size_t bytes : {10, 20000, 200000, 1 << 20, 1 << 20, 3 << 20}) {
      const std::string message = Pattern(bytes, ++seed);
      ASSERT_TRUE(stream.Write(message));
      EXPECT_TRUE(stream.Read() == message) << bytes;
    }
    EXPECT_TRUE(stream.WritesDone());
    EXPECT_EQ(stream.Read(), absl::nullopt);
    EXPECT_TRUE(stream.Finish().ok());
  }

  // Returns the echoed message in the client's memory.
  grpc::ByteBuffer Echo(const grpc::ByteBuffer& request) {
    grpc::GenericStub stub(channel_);
    grpc::CompletionQueue queue;
    Call call;
    auto reader = stub.PrepareUnaryCall(&call, kRawMethod, request, &queue);
    grpc::ByteBuffer response;
    grpc::Status status;
    reader->StartCall();
    reader->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  // Expects that calls use `path`. Returns the reported reason why no better
  // path is used.
  std::string ExpectPath(const std::string& path) {
    const auto reports = DescribePaths(*channel_);
    EXPECT_EQ(reports.size(), 1u);
    if (reports.size() != 1) return "";
    EXPECT_EQ(reports[0].path, path) << reports[0];
    EXPECT_EQ(reports[0].messages_sent, 6u);
    EXPECT_EQ(reports[0].messages_received, 6u);
    return reports[0].reason;
  }

  // A separate service for each server. gRPC allows only one server per service
  // object.
  std::unique_ptr<RawEchoService> service_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
};

TEST_F(SharingTest, CopiesArriveRightOverSharedMemory) {
  const ShmSharing pairs[][2] = {
      {kCopy, kCopy}, {kCopy, kInPlace}, {kInPlace, kCopy}};
  for (const auto& pair : pairs) {
    Start(pair[0], pair[1]);
    ExpectEchoes();
    EXPECT_EQ(ExpectPath("shm"), "");
  }
}

TEST_F(SharingTest, LargeMessageIsInSharedMemoryUnlessItIsCopied) {
  for (ShmSharing of_client : {kInPlace, kCopy}) {
    Start(kInPlace, of_client);
    ExpectEchoes();
    EXPECT_EQ(ExpectPath("shm"), "");
    const grpc::ByteBuffer message = Echo(ToBuffer(Pattern(1 << 20)));
    EXPECT_EQ(TouchesSharedMemory(message), of_client == kInPlace);
  }
}

TEST_F(SharingTest, MessageOutlivesItsConnection) {
  for (ShmSharing sharing : {kInPlace, kCopy}) {
    Start(sharing, sharing);
    ExpectEchoes();
    EXPECT_EQ(ExpectPath("shm"), "");
    const grpc::ByteBuffer message = Echo(ToBuffer(Pattern(1 << 20)));
    channel_.reset();
    Stop();
    EXPECT_TRUE(ToBytes(message) == Pattern(1 << 20));
  }
}

TEST_F(SharingTest, OffAtEitherSideIsTcpWithTheReason) {
  Start(kInPlace, kOff);
  ExpectEchoes();
  EXPECT_THAT(ExpectPath("tcp"), HasSubstr("shm_sharing is off"));
  Start(kOff, kInPlace);
  ExpectEchoes();
  EXPECT_THAT(ExpectPath("tcp"), HasSubstr("shm_sharing is off"));
  Start(kOff, kOff);
  ExpectEchoes();
  EXPECT_THAT(ExpectPath("tcp"), HasSubstr("shm_sharing is off"));
}

TEST_F(SharingTest, RequiredShmThatIsOffIsRefused) {
  Options options = With(kInPlace);
  options.policy = Policy::kRequire;
  options.fabrics = {Fabric::kShm};
  Start(kOff, options);
  Call call;
  RawStream stream(channel_, &call);
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("shm_sharing is off"));
}

// Runs a client in another process with `setting` in its environment. Returns
// the client's output about one stream to a server with Penstock.
std::string StreamWith(const std::string& setting) {
  TestServiceImpl service;
  Stack stack(Path::kShm);
  stack.Serve(&service);
  auto client =
      StartPeer("stream", {"Environment", stack.address()}, {setting});
  return client == nullptr ? "" : client->ReadAll();
}

TEST(SharingEnvironmentTest, SettingOfTheEnvironmentHolds) {
  for (const char* value : {"same-uid", "copy"}) {
    const std::string output =
        StreamWith(absl::StrCat("PENSTOCK_SHM_SHARING=", value));
    EXPECT_THAT(output, HasSubstr("status 0 "));
    EXPECT_THAT(output, HasSubstr("path shm"));
  }
  const std::string output = StreamWith("PENSTOCK_SHM_SHARING=off");
  EXPECT_THAT(output, HasSubstr("status 0 "));
  EXPECT_THAT(output, HasSubstr("path tcp"));
  EXPECT_THAT(output, HasSubstr("shm_sharing is off"));
}

TEST(SharingEnvironmentTest, BadSettingIsOneErrorAndStock) {
  const std::string output = StreamWith("PENSTOCK_SHM_SHARING=yes");
  EXPECT_THAT(output, HasSubstr("PENSTOCK_SHM_SHARING=yes is not a setting: "
                                "use same-uid, copy or off"));
  EXPECT_THAT(output, HasSubstr("path http2"));
}

}  // namespace
}  // namespace penstock::e2e
