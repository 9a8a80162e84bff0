// Tests few descriptors and little locked memory. Calls must continue over the
// available paths, or end with a status. Everything must recover when the
// resource is back.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/string_view.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/call.h"
#include "tests/e2e/child.h"
#include "tests/e2e/path.h"

namespace penstock::e2e {
namespace {

constexpr char kWhySkipped[] =
    "UndefinedBehaviorSanitizer needs a descriptor for each of its looks";

// A limit of this process: for the object's lifetime, only `spare` more
// descriptors can be opened.
class FewDescriptors {
 public:
  explicit FewDescriptors(int spare) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = LowestFree() + spare;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  ~FewDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  static rlim_t LowestFree() {
    const int fd = open("/dev/null", O_RDONLY);
    close(fd);
    return static_cast<rlim_t>(fd);
  }
  rlimit before_;
};

class ExhaustionTest : public testing::Test {
 protected:
  void SetUp() override {
    grpc_init();  // see stack.cc
    server_ = StartPeer("server", {"Environment"});
    ASSERT_NE(server_, nullptr);
    auto port = server_->Find("port ");
    ASSERT_TRUE(port.has_value());
    address_ = "127.0.0.1:" + *port;
  }
  std::shared_ptr<grpc::Channel> NewChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 50);
    return grpc::CreateCustomChannel(
        address_, Credentials(grpc::InsecureChannelCredentials()), arguments);
  }
  static std::string PathOf(grpc::Channel* channel) {
    const auto reports = DescribePaths(*channel);
    return reports.size() == 1 ? reports[0].path : "none";
  }
  // Returns true if the build's sanitizer needs descriptors. To check an
  // object, UBSan opens a pipe. If there is no descriptor, UBSan reports a bad
  // object.
  static bool SanitizerNeedsDescriptors() {
    const char* const sanitizer = std::getenv("PENSTOCK_SANITIZER");
    return sanitizer != nullptr && absl::string_view(sanitizer) == "ubsan";
  }
  // Makes a call with an announced message in each direction.
  static grpc::Status MakeLargeCall(TestService::Stub* stub) {
    Call call;
    call.set_wait_for_ready(true);
    auto stream = stub->FullDuplexCall(&call);
    for (size_t size : {8, 1 << 20, 3 << 20, 100000}) {
      if (!PingPong(stream.get(), size)) break;
    }
    stream->WritesDone();
    return stream->Finish();
  }

  std::unique_ptr<Child> server_;
  std::string address_;
};

TEST_F(ExhaustionTest, ClientWithoutDescriptorsFailsOrFallsBackAndComesBack) {
  if (SanitizerNeedsDescriptors()) GTEST_SKIP() << kWhySkipped;
  std::set<std::string> paths;
  for (int spare = 0; spare <= 64; spare += spare < 16 ? 1 : 12) {
    auto channel = NewChannel();
    auto stub = TestService::NewStub(channel);
    {
      FewDescriptors few(spare);
      const grpc::Status status = MakeEmptyCall(stub.get());
      paths.insert(PathOf(channel.get()));
      EXPECT_EQ(status.ok(), PathOf(channel.get()) != "none") << spare;
      if (!status.ok()) {
        EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE)
            << status.error_message();
      }
    }
    const grpc::Status status = MakeLargeCall(stub.get());
    EXPECT_TRUE(status.ok()) << spare << ": " << status.error_message();
  }
  EXPECT_EQ(paths, (std::set<std::string>{"none", "shm", "tcp"}));
}

TEST_F(ExhaustionTest, ConnectionSurvivesTheLackOfDescriptors) {
  if (SanitizerNeedsDescriptors()) GTEST_SKIP() << kWhySkipped;
  for (int spare = 0; spare <= 4; ++spare) {
    auto channel = NewChannel();
    auto stub = TestService::NewStub(channel);
    grpc::Status status = MakeEmptyCall(stub.get());
    ASSERT_TRUE(status.ok()) << spare << ": " << status.error_message();
    EXPECT_EQ(PathOf(channel.get()), "shm");
    {
      FewDescriptors few(spare);
      status = MakeLargeCall(stub.get());
      EXPECT_TRUE(status.ok()) << spare << ": " << status.error_message();
    }
    status = MakeLargeCall(stub.get());
    EXPECT_TRUE(status.ok()) << spare << ": " << status.error_message();
  }
}

// Tests as many channels as stock gRPC can serve with this limit, with one
// descriptor each.
class CrowdTest : public ExhaustionTest {
 protected:
  static constexpr int kLimit = 100;
  static constexpr size_t kCrowd = 60;

  void SetUp() override {
    if (SanitizerNeedsDescriptors()) GTEST_SKIP() << kWhySkipped;
    rlimit before;
    getrlimit(RLIMIT_NOFILE, &before);
    rlimit limit = before;
    limit.rlim_cur = kLimit;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ExhaustionTest::SetUp();  // at the server
    setrlimit(RLIMIT_NOFILE, &before);
  }

  std::shared_ptr<grpc::Channel> NewStockChannel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(
        address_, grpc::InsecureChannelCredentials(), arguments);
  }
  static void ExpectCall(const std::shared_ptr<grpc::Channel>& channel,
                         size_t number) {
    auto stub = TestService::NewStub(channel);
    Call call;
    call.set_wait_for_ready(true);
    Empty response;
    const grpc::Status status = stub->EmptyCall(&call, Empty(), &response);
    EXPECT_TRUE(status.ok()) << number << ": " << status.error_message();
  }
  void ExpectCalls() const {
    for (size_t i = 0; i < channels_.size(); ++i) ExpectCall(channels_[i], i);
  }
  size_t CountOver(const std::string& path) const {
    size_t count = 0;
    for (const auto& channel : channels_)
      count += PathOf(channel.get()) == path;
    return count;
  }
  // Waits until all channels use shm. Makes calls meanwhile, because gRPC polls
  // idle channels only every five seconds.
  void ExpectShmAgain() const {
    const auto limit = In(6 * kPatience);
    while (CountOver("shm") < channels_.size()) {
      ASSERT_LT(std::chrono::system_clock::now(), limit)
          << CountOver("shm") << " of " << channels_.size();
      ExpectCalls();
      if (HasFailure()) return;
    }
  }

  std::vector<std::shared_ptr<grpc::Channel>> channels_;
};

TEST_F(CrowdTest, ServerServesAsManyAsStockDoes) {
  for (size_t i = 0; i < kCrowd; ++i) {
    channels_.push_back(NewChannel());
    ExpectCall(channels_.back(), i);
  }
  ExpectCalls();
  EXPECT_EQ(CountOver("none"), 0u);
  EXPECT_GT(CountOver("tcp"), 0u);
  channels_.resize(10);
  ExpectShmAgain();
}

TEST_F(CrowdTest, ServerServesThoseThatComeAtOnce) {
  for (size_t i = 0; i < kCrowd; ++i) {
    channels_.push_back(NewChannel());
    channels_.back()->GetState(/*try_to_connect=*/true);
  }
  for (const auto& channel : channels_) {
    EXPECT_TRUE(channel->WaitForConnected(In(kPatience)));
  }
  ExpectCalls();
  ExpectCalls();
  EXPECT_EQ(CountOver("none"), 0u);
  channels_.resize(10);
  ExpectShmAgain();
}

// Gives the first channels paths before all others connect at once.
TEST_F(CrowdTest, PathsGiveWayToConnections) {
  for (size_t i = 0; i < kCrowd / 3; ++i) {
    channels_.push_back(NewChannel());
    ExpectCall(channels_.back(), i);
  }
  ExpectShmAgain();
  std::vector<std::shared_ptr<grpc::Channel>> stock;
  while (stock.size() + channels_.size() < kCrowd) {
    stock.push_back(NewStockChannel());
    stock.back()->GetState(/*try_to_connect=*/true);
  }
  for (size_t i = 0; i < stock.size(); ++i) ExpectCall(stock[i], i);
  ExpectCalls();
  EXPECT_EQ(CountOver("none"), 0u);
  stock.clear();
  ExpectShmAgain();
}

TEST_F(ExhaustionTest, LockedMemoryIsNotNeeded) {
  rlimit before;
  getrlimit(RLIMIT_MEMLOCK, &before);
  rlimit limit = before;
  limit.rlim_cur = 64 * 1024;
  ASSERT_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
  auto client = StartPeer("stream", {"Environment", address_});
  ASSERT_NE(client, nullptr);
  const std::string output = client->ReadAll();
  setrlimit(RLIMIT_MEMLOCK, &before);
  EXPECT_NE(output.find("status 0 "), std::string::npos) << output;
  EXPECT_NE(output.find("path shm"), std::string::npos) << output;
}

}  // namespace
}  // namespace penstock::e2e
