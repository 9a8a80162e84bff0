// Tests RDMA between two kernels: the server is on machine 0, its clients are
// on machine 1. Each case has both sides, and ends when the client has killed
// the server's process.

#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/e2e/verbs/echo.h"
#include "tests/e2e/verbs/rig.h"
#include "tests/e2e/verbs/traffic.h"

namespace penstock::e2e {
namespace {

using std::chrono::seconds;

class VerbsTwoMachinesTest : public VerbsRig {
 protected:
  void SetUp() override {
    VerbsRig::SetUp();
    if (IsSkipped()) return;
    const char* rank = std::getenv("RDMA_VM_RANK");
    ASSERT_NE(rank, nullptr);
    is_server_ = rank == std::string("0");
  }

  // Runs on machine 0, until a client kills it.
  void RunServer(int port) {
    Shell(
        "f=$(mktemp -u) && mkfifo $f && "
        "PENSTOCK_FABRICS=verbs,tcp timeout 100 tests/e2e/verbs/peer server "
        "10.8.0.1:" +
        std::to_string(port) + " <>$f; test $? = 137");
  }

  // Runs on machine 1. Machine 0 may boot later.
  void ConnectTo(int port) {
    channel_ = grpc::CreateCustomChannel(
        absl::StrCat("10.8.0.1:", port),
        Credentials(grpc::InsecureChannelCredentials(), VerbsAt()),
        OwnConnection());
    ASSERT_TRUE(channel_->WaitForConnected(std::chrono::system_clock::now() +
                                           seconds(60)));
    stub_ = TestService::NewStub(channel_);
    ASSERT_TRUE(Echo(stub_.get(), 0, 1).ok());
    EXPECT_EQ(PathOf(channel_.get()).ToString(),
              "verbs (rxe0/1, GID 1, RoCE v2, mtu 4096, to 10.8.0.1, staged: "
              "reads reach beyond a window)");
  }

  grpc::Status KillServer() {
    grpc::ClientContext context;
    context.AddMetadata(kDie, "");
    context.set_deadline(std::chrono::system_clock::now() + seconds(30));
    Empty response;
    return stub_->EmptyCall(&context, Empty(), &response);
  }

  bool is_server_ = false;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<TestService::Stub> stub_;
};

TEST_F(VerbsTwoMachinesTest, CallsAndStreamsOfEachSizeGoThroughUnchanged) {
  if (is_server_) return RunServer(7001);
  ASSERT_NO_FATAL_FAILURE(ConnectTo(7001));
  uint32_t number = 0;
  for (size_t bytes : {0, 1, 1000, 20000, 300000, 8 << 20}) {
    const grpc::Status status = Echo(stub_.get(), ++number, bytes);
    EXPECT_TRUE(status.ok()) << bytes << ": " << status.error_message();
  }
  {
    Traffic traffic(channel_, {1, 5000, 70000, 1 << 20, 8 << 20});
    EXPECT_TRUE(traffic.AwaitMessages(5, seconds(60)));
  }
  EXPECT_EQ(PathOf(channel_.get()).path, "verbs") << PathOf(channel_.get());
  KillServer();
}

TEST_F(VerbsTwoMachinesTest, TheDeathOfTheServersProcessEndsCallsInASecond) {
  if (is_server_) return RunServer(7002);
  ASSERT_NO_FATAL_FAILURE(ConnectTo(7002));
  grpc::ClientContext context;
  auto stream = stub_->FullDuplexCall(&context);
  StreamingOutputCallRequest request;
  *request.mutable_payload() = NumberedPayload(1, 100000);
  StreamingOutputCallResponse response;
  ASSERT_TRUE(stream->Write(request) && stream->Read(&response));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(KillServer().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(1));
  EXPECT_TRUE(Await(seconds(15), [] {
    return RdmaObjects().text.find("qp 0") != std::string::npos;
  })) << RdmaObjects().text;
}

}  // namespace
}  // namespace penstock::e2e
