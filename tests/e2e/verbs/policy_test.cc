// Tests which devices verbs chooses, when verbs is available, and how
// descriptions report it.

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/call.h"
#include "tests/e2e/child.h"
#include "tests/e2e/verbs/echo.h"
#include "tests/e2e/verbs/rig.h"

namespace penstock::e2e {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

using Lines = std::vector<std::string>;

// Matches a list of all devices, in any order.
testing::Matcher<std::string> ListsAllDevices() {
  return AllOf(HasSubstr("; there is "),
               HasSubstr("rxe0/1, GID 1, RoCE v2, mtu 4096"),
               HasSubstr("rxe1/1, GID 1, RoCE v2, mtu 4096"));
}

// Returns the lines of `text` that contain `part`.
Lines LinesWith(absl::string_view part, const std::string& text) {
  Lines found;
  for (const auto& line : absl::StrSplit(text, '\n')) {
    if (absl::StrContains(line, part)) found.emplace_back(line);
  }
  return found;
}

class VerbsPolicyTest : public VerbsRig {
 protected:
  ~VerbsPolicyTest() override { StopServing(); }

  // Returns the path of one call between two sides with these options.
  PathReport Call(const Options& server, const Options& client) {
    Serve(&service_, server);
    auto channel = Connect(client);
    const grpc::Status status =
        MakeEmptyCall(TestService::NewStub(channel).get());
    EXPECT_TRUE(status.ok()) << status.error_message();
    return PathOf(channel.get());
  }

  void ExpectTcp(const Options& server, const Options& client,
                 const testing::Matcher<std::string>& reason) {
    const PathReport path = Call(server, client);
    EXPECT_EQ(path.path, "tcp") << path;
    EXPECT_THAT(path.reason, reason);
  }

  // Makes calls until one is refused. The server accepts calls until it has
  // decided.
  grpc::Status CallUntilRefused(const Options& server, const Options& client) {
    Serve(&service_, server);
    auto stub = TestService::NewStub(Connect(client));
    grpc::Status status;
    Await(kPatience, [&] {
      status = MakeEmptyCall(stub.get());
      return !status.ok();
    });
    return status;
  }

  EchoService service_;
};

TEST_F(VerbsPolicyTest, ThePathSaysDevicePortGidKindAndMtu) {
  const PathReport path = Call(VerbsAt("rxe1"), VerbsAt("rxe0"));
  EXPECT_EQ(path.ToString(),
            "verbs (rxe0/1, GID 1, RoCE v2, mtu 4096, to 10.9.0.2, staged: "
            "reads reach beyond a window)");
}

TEST_F(VerbsPolicyTest, EachSideChoosesItsDeviceAndPort) {
  for (const std::string server : {"rxe0", "rxe1/1"}) {
    for (const std::string client : {"rxe0/1", "rxe1"}) {
      const PathReport path = Call(VerbsAt(server), VerbsAt(client));
      EXPECT_EQ(path.path, "verbs") << path;
      EXPECT_THAT(path.detail, StartsWith(client.substr(0, 4) + "/1, "));
      EXPECT_THAT(path.detail,
                  HasSubstr(server.substr(0, 4) == "rxe0" ? "to 10.9.0.1"
                                                          : "to 10.9.0.2"));
    }
  }
}

TEST_F(VerbsPolicyTest, ADeviceThatIsNotThereMeansTcpAndAListOfThoseThatAre) {
  const auto why = AllOf(HasSubstr("no RDMA address here fits device nosuch; "),
                         ListsAllDevices());
  ExpectTcp(VerbsAt(), VerbsAt("nosuch"), why);
  ExpectTcp(VerbsAt("nosuch"), VerbsAt(), why);
  ExpectTcp(VerbsAt("nosuch"), VerbsAt("nosuch"), why);
}

TEST_F(VerbsPolicyTest, APortThatIsNotThereMeansTcp) {
  ExpectTcp(VerbsAt(), VerbsAt("rxe0/2"),
            AllOf(HasSubstr("no RDMA address here fits device rxe0, port 2; "),
                  ListsAllDevices()));
}

TEST_F(VerbsPolicyTest, TheGidIndexChoosesTheAddress) {
  Options options = VerbsAt("rxe0");
  options.verbs_gid_index = 1;
  EXPECT_EQ(Call(options, options).path, "verbs");
  options.verbs_gid_index = 200;
  ExpectTcp(
      VerbsAt(), options,
      AllOf(HasSubstr("no RDMA address here fits device rxe0, GID index 200; "),
            ListsAllDevices()));
}

TEST_F(VerbsPolicyTest, ATrafficClassIsTaken) {
  Options options = VerbsAt();
  options.verbs_traffic_class = 104;  // DSCP 26, as RoCE often has it
  EXPECT_EQ(Call(options, options).path, "verbs");
}

TEST_F(VerbsPolicyTest, WhereOneSideDoesNotWantVerbsCallsGoOverTcp) {
  ExpectTcp(OnlyTcp(), VerbsAt(), HasSubstr("verbs"));
  ExpectTcp(VerbsAt(), OnlyTcp(), SizeIs(testing::Gt(0u)));
}

TEST_F(VerbsPolicyTest, AClientThatRequiresVerbsIsToldWhyItIsNotHad) {
  Serve(&service_, VerbsAt());
  auto stub = TestService::NewStub(Connect(OnlyVerbsAt("nosuch")));
  const grpc::Status status = MakeEmptyCall(stub.get());
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("Penstock policy is \"require verbs"),
                    HasSubstr("fits device nosuch"),
                    HasSubstr("PENSTOCK_POLICY=prefer")));
}

TEST_F(VerbsPolicyTest, ARequirementThatTheOtherSideDoesNotMeetRefuses) {
  EXPECT_EQ(CallUntilRefused(OnlyTcp(), OnlyVerbsAt()).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(CallUntilRefused(OnlyVerbsAt(), OnlyTcp()).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

TEST_F(VerbsPolicyTest, ARequirementThatCanBeMetIs) {
  EXPECT_EQ(Call(OnlyVerbsAt(), OnlyVerbsAt()).path, "verbs");
  EXPECT_EQ(Call(OnlyVerbsAt("rxe1"), VerbsAt("rxe0")).path, "verbs");
}

// Runs processes with separate environments.
class VerbsProcessTest : public VerbsPolicyTest {
 protected:
  // Returns the output of "peer" as a client of a local server, which may
  // use verbs. `wrapper` is a command that runs the following command.
  std::string RunClient(Lines wrapper, Lines flags = {"1", "8", "1"}) {
    Serve(&service_, VerbsAt());
    wrapper.insert(wrapper.end(), {"tests/e2e/verbs/peer", "client"});
    wrapper.push_back(address());
    wrapper.insert(wrapper.end(), flags.begin(), flags.end());
    auto client = Child::Start(wrapper, kEnvironment);
    return client == nullptr ? "" : client->ReadAll();
  }

  // Returns a command prefix with private mounts `mounts`.
  static Lines WithMounts(const std::string& mounts) {
    return {"unshare", "-m", "sh", "-c", mounts + "; exec \"$@\"", "sh"};
  }
  // Returns a command prefix that limits locked memory, even for root.
  static Lines WithMemlock(size_t bytes) {
    return {"setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock",
            "prlimit", absl::StrCat("--memlock=", bytes, ":", bytes)};
  }

  static void ExpectTcpInOneLine(const std::string& output,
                                 const testing::Matcher<std::string>& why) {
    EXPECT_THAT(LinesWith("status ", output), Each("status 0 ")) << output;
    const Lines paths = LinesWith("path ", output);
    ASSERT_THAT(paths, SizeIs(1)) << output;
    EXPECT_THAT(paths[0], AllOf(StartsWith("path tcp"), why));
    const Lines log = LinesWith(" penstock[", output);
    ASSERT_THAT(log, SizeIs(1)) << output;
    EXPECT_THAT(log[0], why);
  }

  const Lines kEnvironment = {"PENSTOCK_FABRICS=verbs,tcp"};
};

TEST_F(VerbsProcessTest, ThePathIsAnnouncedInOneLineOfTheLog) {
  const std::string output = RunClient({"env", "PENSTOCK_VERBS_DEVICE=rxe1"});
  EXPECT_THAT(LinesWith("status ", output), Contains("status 0 ")) << output;
  const Lines log = LinesWith(" penstock[", output);
  ASSERT_THAT(log, SizeIs(1)) << output;
  EXPECT_THAT(log[0], AllOf(HasSubstr(" info "),
                            HasSubstr("connection to ipv4:" + address() +
                                      ": verbs (rxe1/1, GID 1, RoCE v2, mtu "
                                      "4096, to 10.9.0.")));
}

TEST_F(VerbsProcessTest, ADeviceIsChosenByTheEnvironmentToo) {
  ExpectTcpInOneLine(RunClient({"env", "PENSTOCK_VERBS_DEVICE=nosuch"}),
                     ListsAllDevices());
}

TEST_F(VerbsProcessTest, WithoutTheLibraryOneLineSaysSoAndTcpWorks) {
  for (const std::string library : {"libibverbs", "librdmacm"}) {
    const std::string output =
        RunClient(WithMounts("mount --bind /dev/null "
                             "$(realpath /usr/lib/x86_64-linux-gnu/" +
                             library + ".so.1)"));
    ExpectTcpInOneLine(output, HasSubstr("no RDMA library here: "));
    ExpectTcpInOneLine(output, HasSubstr(library + "1"));
  }
}

TEST_F(VerbsProcessTest, WithoutDeviceFilesOneLineSaysSoAndTcpWorks) {
  ExpectTcpInOneLine(
      RunClient(WithMounts("mount -t tmpfs none /dev/infiniband")),
      HasSubstr("RDMA"));
}

TEST_F(VerbsProcessTest, WithAlmostNoLockedMemoryTcpWorksAndTheRemedyIsNamed) {
  ExpectTcpInOneLine(RunClient(WithMemlock(64 << 10)), HasSubstr("ulimit -l"));
}

// Tests a user's default limit of locked memory, below the memory that would be
// locked.
TEST_F(VerbsProcessTest, LargeMessagesFitIntoTheUsualLimitOfLockedMemory) {
  Lines command = WithMemlock(8 << 20);
  command.insert(command.end(),
                 {"tests/e2e/verbs/peer", "server", "127.0.0.1:0"});
  auto server = Child::Start(command, kEnvironment);
  ASSERT_NE(server, nullptr);
  const auto port = server->Find("port ");
  ASSERT_TRUE(port.has_value());
  command = WithMemlock(8 << 20);
  command.insert(command.end(), {"tests/e2e/verbs/peer", "client",
                                 "127.0.0.1:" + *port, "4", "16777216", "1"});
  auto client = Child::Start(command, kEnvironment);
  ASSERT_NE(client, nullptr);
  Lines paths;
  for (int i = 0; i < 4; ++i) {
    // Waits in a loop, because Find() waits for a limited time, and the client
    // may print nothing for ten seconds.
    absl::optional<std::string> status;
    for (int k = 0; k < 12 && !status.has_value(); ++k) {
      status = client->Find("status ");
    }
    EXPECT_EQ(status.value_or("none"), "0 ");
    paths.push_back(client->Find("path ").value_or("none"));
  }
  // Expects some connections over verbs; others may have stayed on tcp.
  EXPECT_THAT(paths, Contains(StartsWith("verbs")));
}

}  // namespace
}  // namespace penstock::e2e
