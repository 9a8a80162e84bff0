// Tests a server process that is stopped for a while, as in a paused virtual
// machine or control group. No call may be lost over a path of Penstock. Over
// HTTP/2, stock gRPC may lose a call if the pause interrupts a thread at work.

#include <chrono>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "tests/e2e/call.h"
#include "tests/e2e/child.h"
#include "tests/e2e/path.h"

namespace penstock::e2e {
namespace {

constexpr std::chrono::milliseconds kPause(150);
// The deadline of a call, which is shorter than the pause. A deadline that
// includes the pause therefore expires.
constexpr std::chrono::milliseconds kTimeout(100);
constexpr int kRounds = 8;

using Clock = std::chrono::steady_clock;

class PauseTest : public testing::TestWithParam<std::tuple<const char*, Path>> {
 protected:
  PauseTest()
      : server_(
            Child::Start({"tests/e2e/processes/busy", "server", "async", "Shm"},
                         {absl::StrCat("PENSTOCK_POLLING=", polling())})) {
    const auto port = server_->Find("port ");
    EXPECT_TRUE(port.has_value());
    stub_ = std::make_unique<TestService::Stub>(grpc::CreateChannel(
        absl::StrCat("127.0.0.1:", port.value_or("1")),
        CredentialsFor(path(), grpc::InsecureChannelCredentials())));
  }

  const char* polling() const { return std::get<0>(GetParam()); }
  Path path() const { return std::get<1>(GetParam()); }

  const std::unique_ptr<Child> server_;
  std::unique_ptr<TestService::Stub> stub_;
};

TEST_P(PauseTest, NoCallFailsBeforeItsTimeIsOver) {
  grpc::CompletionQueue queue;
  for (int round = 0; round < kRounds; ++round) {
    // Makes a call, after which the server waits for the next call.
    ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
    server_->Suspend();
    std::this_thread::sleep_for(kPause);
    const auto start = Clock::now();
    grpc::ClientContext context;
    context.set_deadline(In(kTimeout));
    auto reader = stub_->AsyncEmptyCall(&context, Empty(), &queue);
    Empty response;
    grpc::Status status;
    reader->Finish(&response, &status, this);
    server_->Resume();
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    // Allows an expired deadline only if the timeout has really passed, which
    // may happen on a busy machine.
    EXPECT_TRUE(status.ok() || Clock::now() - start >= kTimeout)
        << "round " << round << ": " << status.error_message();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Modes, PauseTest,
    testing::Combine(testing::Values("adaptive", "busy", "event"),
                     testing::Values(Path::kShm, Path::kTcp)),
    [](const auto& info) {
      return std::get<0>(info.param) + NameOf(std::get<1>(info.param));
    });

}  // namespace
}  // namespace penstock::e2e
