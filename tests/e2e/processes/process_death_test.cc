// Tests the death of either side during calls. The other side must notice, and
// leak nothing.

#include <dirent.h>

#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/e2e/child.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

constexpr int kRounds = 20;
// The number of rounds after which all permanent objects exist.
constexpr int kWarmUp = 5;
constexpr size_t kLarge = 2 << 20;

size_t CountEntries(const char* folder) {
  size_t count = 0;
  DIR* entries = opendir(folder);
  while (entries != nullptr && readdir(entries) != nullptr) ++count;
  if (entries != nullptr) closedir(entries);
  return count;
}

// The resources of this process.
struct Holdings {
  size_t descriptors = CountEntries("/proc/self/fd");
  size_t threads = CountEntries("/proc/self/task");
  size_t shared_mappings = 0;  // of files in memory
  size_t mapped_pages = 0;
  size_t resident_pages = 0;

  Holdings() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      shared_mappings += absl::StrContains(line, "memfd:");
    }
    std::ifstream("/proc/self/statm") >> mapped_pages >> resident_pages;
  }

  // Returns true if nothing has grown. Ignores a few threads of gRPC, and 16
  // MiB that the allocator keeps: about half of the large messages between two
  // measurements.
  bool FlatSince(const Holdings& before) const {
    return descriptors <= before.descriptors && threads <= before.threads + 2 &&
           shared_mappings <= before.shared_mappings &&
           resident_pages <= before.resident_pages + 4096;
  }
};

std::ostream& operator<<(std::ostream& out, const Holdings& held) {
  return out << held.descriptors << " descriptors, " << held.threads
             << " threads, " << held.shared_mappings << " shared mappings, "
             << held.resident_pages << " resident pages";
}

// Expects that this process soon holds no more resources than `before`. A
// process notices its peer's death, and frees the resources, after a delay.
void ExpectFlat(const Holdings& before) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!Holdings().FlatSince(before)) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "was " << before << "; is " << Holdings();
      return;
    }
    std::this_thread::yield();
  }
}

class Stopwatch {
 public:
  void ExpectWithinASecond() const {
    EXPECT_LT(std::chrono::steady_clock::now() - start_,
              std::chrono::seconds(1));
  }

 private:
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
};

class ServerDeathTest : public StackTest {
 protected:
  void SetUp() override { StartServer(); }

  void StartServer() {
    server_process_ = StartPeer("server", {NameOf(GetParam())});
    ASSERT_NE(server_process_, nullptr);
    auto port = server_process_->Find("port ");
    ASSERT_TRUE(port.has_value());
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(
        absl::StrCat("127.0.0.1:", *port),
        CredentialsFor(GetParam(), grpc::InsecureChannelCredentials()),
        arguments);
    stub_ = TestService::NewStub(channel_);
  }

  std::unique_ptr<Child> server_process_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<TestService::Stub> stub_;
};

TEST_P(ServerDeathTest, CallsThatRunEndUnavailableWithinASecond) {
  constexpr int kStreams = 8;
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < kStreams; ++i) {
    calls.push_back(std::make_unique<Call>());
    streams.push_back(stub_->FullDuplexCall(calls.back().get()));
    ASSERT_TRUE(PingPong(streams.back().get()));
  }
  ExpectTraffic(*channel_, kStreams, kStreams);
  auto reader = std::async(std::launch::async, [&] {
    StreamingOutputCallResponse response;
    return streams[0]->Read(&response);
  });
  Stopwatch since_death;
  server_process_->Kill();
  EXPECT_FALSE(reader.get());
  for (auto& stream : streams) {
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  since_death.ExpectWithinASecond();
}

TEST_P(ServerDeathTest, LargeMessagesOnTheirWayEndUnavailableWithinASecond) {
  Call call;
  auto stream = stub_->FullDuplexCall(&call);
  ASSERT_TRUE(PingPong(stream.get(), kLarge));
  std::promise<void> flowing;
  auto writer = std::async(std::launch::async, [&] {
    StreamingOutputCallRequest request;
    *request.mutable_payload() = ZeroPayload(kLarge);
    for (int i = 0; stream->Write(request); ++i) {
      if (i == 4) flowing.set_value();
    }
  });
  ASSERT_EQ(flowing.get_future().wait_for(kPatience),
            std::future_status::ready);
  ExpectPath(*channel_);
  Stopwatch since_death;
  server_process_->Kill();
  writer.get();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  since_death.ExpectWithinASecond();
}

TEST_P(ServerDeathTest, DeathsOfServersLeaveNothingBehindInAClient) {
  std::unique_ptr<Holdings> before;
  for (int round = 0; round < kRounds; ++round) {
    if (round == kWarmUp) before = std::make_unique<Holdings>();
    if (round > 0) StartServer();
    Call call;
    auto stream = stub_->FullDuplexCall(&call);
    ASSERT_TRUE(PingPong(stream.get(), kLarge));
    ExpectTraffic(*channel_, 1, 1);
    server_process_->Kill();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
    stub_.reset();
    channel_.reset();
  }
  server_process_.reset();
  ExpectFlat(*before);
}

class ClientDeathTest : public ServiceTest {
 protected:
  std::unique_ptr<Child> StartClient() {
    auto client = StartPeer("stream", {NameOf(GetParam()), address()});
    EXPECT_NE(client, nullptr);
    EXPECT_TRUE(client->Find("under way").has_value());
    return client;
  }
};

TEST_P(ClientDeathTest, ServerSeesTheCallCancelledWithinASecond) {
  auto client = StartClient();
  Stopwatch since_death;
  client->Kill();
  EXPECT_TRUE(service_.AwaitCancelled(1));
  since_death.ExpectWithinASecond();
}

TEST_P(ClientDeathTest, DeathsOfClientsLeaveNothingBehindInAServer) {
  std::unique_ptr<Holdings> before;
  for (int round = 0; round < kRounds; ++round) {
    if (round == kWarmUp) before = std::make_unique<Holdings>();
    StartClient()->Kill();
    ASSERT_TRUE(service_.AwaitCancelled(round + 1));
  }
  ExpectFlat(*before);
  // Expects that the server still serves.
  EXPECT_TRUE(MakeEmptyCall(stub_.get()).ok());
  ExpectTraffic(1, 1);
}

INSTANTIATE_TEST_SUITE_P(Over, ServerDeathTest, EachPath(), PathName());
INSTANTIATE_TEST_SUITE_P(Over, ClientDeathTest, EachPath(), PathName());

}  // namespace
}  // namespace penstock::e2e
