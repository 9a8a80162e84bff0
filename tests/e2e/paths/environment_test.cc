// Tests valid and invalid values of PENSTOCK_*, each in a separate process.

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
#include "tests/transport/fabric/shm/kernel_pages.h"

namespace penstock::e2e {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::StartsWith;

using Lines = std::vector<std::string>;

// Returns the lines of `text` that contain `part`.
Lines LinesWith(absl::string_view part, const std::string& text) {
  Lines found;
  for (const auto& line : absl::StrSplit(text, '\n')) {
    if (absl::StrContains(line, part)) found.emplace_back(line);
  }
  return found;
}

class EnvironmentTest : public testing::Test {
 protected:
  // Runs a client in another process with these environment variables. Returns
  // its output. The client makes one call to a server of `path`: an empty call,
  // or with the role "stream" a call that waits for a large answer.
  static std::string Call(Path path, const Lines& environment,
                          const std::string& role = "call") {
    TestServiceImpl service;
    Stack stack(path);
    stack.Serve(&service);
    auto client =
        StartPeer(role, {"Environment", stack.address()}, environment);
    return client == nullptr ? "" : client->ReadAll();
  }

  // Returns the output about one call to a server in `environment`.
  static std::string CallServer(const Lines& environment) {
    auto server = StartPeer("server", {"Environment"}, environment);
    if (server == nullptr) return "";
    auto port = server->Find("port ");
    if (!port.has_value()) return "";
    auto client = StartPeer("call", {"Environment", "127.0.0.1:" + *port});
    return client == nullptr ? "" : client->ReadAll();
  }

  static void ExpectPath(const std::string& path, const std::string& output) {
    EXPECT_THAT(LinesWith("status ", output), Contains("status 0 ")) << output;
    EXPECT_THAT(LinesWith("path ", output),
                Contains(StartsWith("path " + path)))
        << output;
  }

  static void ExpectOneError(const std::string& sentence,
                             const std::string& output) {
    const Lines errors = LinesWith(" error penstock[", output);
    ASSERT_THAT(errors, SizeIs(1)) << output;
    EXPECT_THAT(errors[0], HasSubstr(sentence));
  }
};

TEST_F(EnvironmentTest, WithoutSettingsShmIsPreferred) {
  const std::string output = Call(Path::kShm, {});
  ExpectPath("shm", output);
  EXPECT_THAT(LinesWith(" info penstock[", output), SizeIs(1)) << output;
  ExpectPath("shm", CallServer({}));
}

TEST_F(EnvironmentTest, PolicyOffIsStock) {
  ExpectPath("http2", Call(Path::kShm, {"PENSTOCK_POLICY=off"}));
  ExpectPath("http2", CallServer({"PENSTOCK_POLICY=off"}));
}

TEST_F(EnvironmentTest, PolicyRequireRefusesAStockServer) {
  const std::string output =
      Call(Path::kStockServer, {"PENSTOCK_POLICY=require"});
  EXPECT_THAT(output, HasSubstr("status 14 "));
  EXPECT_THAT(output, HasSubstr("the peer does not speak Penstock"));
  EXPECT_THAT(LinesWith("path ", output), IsEmpty());
}

TEST_F(EnvironmentTest, FabricsAreChosen) {
  ExpectPath("tcp", Call(Path::kShm, {"PENSTOCK_FABRICS=tcp"}));
  ExpectPath("tcp", Call(Path::kShm, {"PENSTOCK_FABRICS=tcp,shm"}));
  ExpectPath("shm", Call(Path::kShm, {"PENSTOCK_FABRICS=shm"}));
  ExpectPath("tcp", CallServer({"PENSTOCK_FABRICS=tcp"}));
}

TEST_F(EnvironmentTest, EachWayOfPollingWorks) {
  for (const char* polling : {"adaptive", "busy", "event"}) {
    const std::string setting = absl::StrCat("PENSTOCK_POLLING=", polling);
    ExpectPath("shm", Call(Path::kShm, {setting}));
    ExpectPath("shm", CallServer({setting}));
  }
}

TEST_F(EnvironmentTest, LevelOfTheLogHolds) {
  for (const char* level : {"warning", "error", "off"}) {
    const std::string output =
        Call(Path::kShm, {absl::StrCat("PENSTOCK_LOG=", level)});
    ExpectPath("shm", output);
    EXPECT_THAT(LinesWith("penstock[", output), IsEmpty()) << output;
  }
}

TEST_F(EnvironmentTest, EmptyIsNotSet) {
  const Lines empty = {
      "PENSTOCK_POLICY=", "PENSTOCK_FABRICS=", "PENSTOCK_SHM_DIRECTORY="};
  ExpectPath("shm", Call(Path::kShm, empty));
  ExpectPath("shm", CallServer(empty));
}

TEST_F(EnvironmentTest, BadPolicyIsOneErrorAndStock) {
  for (const char* value : {"always", "REQUIRE", "require "}) {
    const std::string setting = absl::StrCat("PENSTOCK_POLICY=", value);
    const std::string output = Call(Path::kShm, {setting});
    ExpectPath("http2", output);
    ExpectOneError(setting + " is not a setting: use require, prefer or off",
                   output);
    ExpectPath("http2", CallServer({setting}));
  }
}

TEST_F(EnvironmentTest, BadFabricsAreOneErrorAndStock) {
  for (const char* value : {"rdma", "shm, tcp", "shm,"}) {
    const std::string setting = absl::StrCat("PENSTOCK_FABRICS=", value);
    const std::string output = Call(Path::kShm, {setting});
    ExpectPath("http2", output);
    ExpectOneError(setting, output);
    ExpectPath("http2", CallServer({setting}));
  }
  const std::string output = Call(Path::kShm, {"PENSTOCK_FABRICS=shm,shm"});
  ExpectPath("http2", output);
  ExpectOneError("names shm twice", output);
}

TEST_F(EnvironmentTest, BadFabricsUnderRequireMakeNoCall) {
  const Lines bad = {"PENSTOCK_POLICY=require", "PENSTOCK_FABRICS=rdma"};
  const std::string output = Call(Path::kShm, bad);
  EXPECT_THAT(LinesWith("status ", output), SizeIs(1)) << output;
  EXPECT_THAT(output, testing::Not(HasSubstr("status 0 ")));
  ExpectOneError("PENSTOCK_FABRICS=rdma", output);
  auto server = StartPeer("server", {"Environment"}, bad);
  ASSERT_NE(server, nullptr);
  EXPECT_FALSE(server->Find("port ").has_value());
  EXPECT_EQ(server->Finish(), 1);
}

TEST_F(EnvironmentTest, BadPollingIsOneErrorAndAdaptive) {
  const std::string output = Call(Path::kShm, {"PENSTOCK_POLLING=often"});
  ExpectPath("shm", output);
  ExpectOneError(
      "PENSTOCK_POLLING=often is not a setting: use adaptive, busy or event",
      output);
}

// Tests the setting, whether or not the machine has reserved huge pages.
TEST_F(EnvironmentTest, HugePagesAreReservedOnesIfThatIsWanted) {
  fabric::shm::KernelPagesLock lock;
  const Lines wanted = LinesWith(
      "path shm",
      Call(Path::kShm, {"PENSTOCK_SHM_HUGE_PAGES=reserved"}, "stream"));
  EXPECT_THAT(wanted, Contains(HasSubstr(" of 16 MiB in reserved huge pages")));
  for (const char* setting : {"=transparent", "=off"}) {
    const std::string output =
        Call(Path::kShm, {absl::StrCat("PENSTOCK_SHM_HUGE_PAGES", setting)},
             "stream");
    ExpectPath("shm", output);
    EXPECT_THAT(output, Not(HasSubstr("huge pages"))) << output;
  }
}

TEST_F(EnvironmentTest, BadHugePagesAreOneErrorAndTransparent) {
  const std::string output =
      Call(Path::kShm, {"PENSTOCK_SHM_HUGE_PAGES=1GB"}, "stream");
  ExpectPath("shm", output);
  ExpectOneError(
      "PENSTOCK_SHM_HUGE_PAGES=1GB is not a setting: use transparent, reserved "
      "or off",
      output);
}

TEST_F(EnvironmentTest, BadLevelIsOneErrorAndInfo) {
  const std::string output = Call(Path::kShm, {"PENSTOCK_LOG=loud"});
  ExpectPath("shm", output);
  ExpectOneError("PENSTOCK_LOG=loud is not a level", output);
  EXPECT_THAT(LinesWith(" info penstock[", output), SizeIs(1)) << output;
}

}  // namespace
}  // namespace penstock::e2e
