// Tests Penstock when it is loaded too late, or with an unsuitable gRPC.
// Penstock must print a message, and gRPC must work as without Penstock.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/child.h"
#include "tests/e2e/stack.h"
#include "tests/e2e/test_service.h"

namespace penstock::e2e {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

using Lines = std::vector<std::string>;

constexpr char kLibrary[] = "tests/e2e/processes/libpenstock_plugin.so";
constexpr char kLate[] = "the Penstock library was loaded after gRPC";
constexpr char kMismatch[] = "gRPC core 30.1.2 is loaded";

Lines LinesWith(absl::string_view part, const std::string& text) {
  Lines found;
  for (const auto& line : absl::StrSplit(text, '\n')) {
    if (absl::StrContains(line, part)) found.emplace_back(line);
  }
  return found;
}

class LoadingTest : public testing::Test {
 protected:
  LoadingTest() : stack_(Path::kShm) { stack_.Serve(&service_); }
  ~LoadingTest() override { stack_.StopServing(std::chrono::milliseconds(0)); }

  std::string LateCalls(const std::string& role) {
    auto client = Child::Start(
        {"tests/e2e/processes/late", role, kLibrary, stack_.address()});
    return client == nullptr ? "" : client->ReadAll();
  }

  // Returns the output of a client with another gRPC.
  std::string Call(Lines environment = {}) {
    Preload(&environment);
    auto client =
        StartPeer("call", {"Environment", stack_.address()}, environment);
    return client == nullptr ? "" : client->ReadAll();
  }
  static void Preload(Lines* environment) {
    environment->push_back(
        "LD_PRELOAD=tests/e2e/processes/libother_version.so");
    environment->push_back("ASAN_OPTIONS=verify_asan_link_order=0");
  }

  TestServiceImpl service_;
  Stack stack_;
};

TEST_F(LoadingTest, ClientThatLoadsItFirstIsToldNothing) {
  const std::string output = LateCalls("early");
  EXPECT_THAT(output, HasSubstr("status 0 \npath shm"));
  EXPECT_THAT(LinesWith(kLate, output), IsEmpty());
}

TEST_F(LoadingTest, ClientThatLoadsItLateUsesItAndIsToldSoOnce) {
  const std::string output = LateCalls("call");
  EXPECT_THAT(output, HasSubstr("status 0 \npath shm"));
  ASSERT_THAT(LinesWith(kLate, output), SizeIs(1)) << output;
  EXPECT_THAT(LinesWith(kLate, output)[0],
              HasSubstr("link it into the program, or load it first"));
}

TEST_F(LoadingTest, ServerThatLoadsItLateIsStockAndIsToldWhy) {
  auto server = Child::Start({"tests/e2e/processes/late", "server", kLibrary});
  ASSERT_NE(server, nullptr);
  auto said = server->Find("20");  // the log line begins with the year
  ASSERT_TRUE(said.has_value());
  EXPECT_THAT(*said, HasSubstr(kLate));
  EXPECT_THAT(*said, HasSubstr("link it into the program, or load it first"));
  auto port = server->Find("port ");
  ASSERT_TRUE(port.has_value());
  auto client = StartPeer("call", {"Environment", "127.0.0.1:" + *port});
  ASSERT_NE(client, nullptr);
  const std::string output = client->ReadAll();
  EXPECT_THAT(LinesWith("status ", output), ElementsAre("status 0 "));
  EXPECT_THAT(LinesWith("path ", output), Contains(StartsWith("path http2")));
}

TEST_F(LoadingTest, ClientBesideAnotherGrpcIsStockAndIsToldWhy) {
  const std::string output = Call();
  EXPECT_THAT(LinesWith("status ", output), ElementsAre("status 0 ")) << output;
  EXPECT_THAT(
      LinesWith("path ", output),
      ElementsAre(AllOf(StartsWith("path http2: "), HasSubstr(kMismatch))));
  const Lines errors = LinesWith(" error penstock[", output);
  ASSERT_THAT(errors, SizeIs(1)) << output;
  EXPECT_THAT(errors[0], HasSubstr(kMismatch));
}

TEST_F(LoadingTest, ServerBesideAnotherGrpcIsStock) {
  Lines environment;
  Preload(&environment);
  auto server = StartPeer("server", {"Environment"}, environment);
  ASSERT_NE(server, nullptr);
  auto port = server->Find("port ");
  ASSERT_TRUE(port.has_value());
  auto client = StartPeer("call", {"Environment", "127.0.0.1:" + *port});
  ASSERT_NE(client, nullptr);
  const std::string output = client->ReadAll();
  EXPECT_THAT(LinesWith("status ", output), ElementsAre("status 0 "));
  EXPECT_THAT(LinesWith("path ", output), Contains(StartsWith("path http2")));
}

TEST_F(LoadingTest, RequirementBesideAnotherGrpcFailsWithTheReason) {
  const std::string output = Call({"PENSTOCK_POLICY=require"});
  const Lines statuses = LinesWith("status ", output);
  ASSERT_THAT(statuses, SizeIs(1)) << output;
  EXPECT_THAT(statuses[0], Not(StartsWith("status 0")));
  EXPECT_THAT(statuses[0], HasSubstr(kMismatch));
  Lines environment = {"PENSTOCK_POLICY=require"};
  Preload(&environment);
  auto server = StartPeer("server", {"Environment"}, environment);
  ASSERT_NE(server, nullptr);
  EXPECT_THAT(server->ReadAll(), HasSubstr(kMismatch));
  EXPECT_EQ(server->Finish(), 1);
}

}  // namespace
}  // namespace penstock::e2e
