// Tests shared memory between different processes: of two users, in two
// namespaces, or without memory to share.

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/certificates.h"
#include "tests/e2e/child.h"

namespace penstock::e2e {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using Flags = std::vector<std::string>;

constexpr char kNobody[] = "uid=65534";

class NeighboursTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root to become another user and to unshare";
    }
    ASSERT_NE(mkdtemp(&directory_[0]), nullptr);
    // Lets all users write to the folder, as to /tmp.
    ASSERT_EQ(chmod(directory_.c_str(), 01777), 0);
  }
  ~NeighboursTest() override {
    auto removal = Child::Start({"rm", "-rf", directory_});
    if (removal != nullptr) removal->ReadAll();
  }

  std::unique_ptr<Child> Start(const std::string& role,
                               const std::string& address, Flags flags) const {
    flags.insert(flags.begin(),
                 {"tests/e2e/security/neighbour", role, address});
    return Child::Start(std::move(flags), environment_);
  }

  // Returns the output of a client that calls a server.
  std::string Call(const Flags& of_server, const Flags& of_client) {
    auto server = Start("server", listen_at_, of_server);
    auto address = server->Find("serving ");
    EXPECT_TRUE(address.has_value());
    if (!address.has_value()) return "";
    auto client = Start("client", *address, of_client);
    return client->ReadAll();
  }

  static void ExpectAllEchoed(const std::string& said) {
    EXPECT_THAT(said, HasSubstr("echoed 8\n"));
    EXPECT_THAT(said, HasSubstr("echoed 1048576\n"));
    EXPECT_THAT(said, HasSubstr("echoed 67108864\n"));
    EXPECT_THAT(said, HasSubstr("status 0 "));
  }

  void UseTls() {
    ASSERT_TRUE(TestCertificates().has_value()) << "no openssl command?";
    environment_ = {
        "NEIGHBOUR_KEY=" + TestCertificates()->server.key,
        "NEIGHBOUR_CERTIFICATE=" + TestCertificates()->server.certificate,
        "NEIGHBOUR_AUTHORITY=" + TestCertificates()->authority.certificate};
  }

  std::string directory_ = "/tmp/neighbours-XXXXXX";
  std::string listen_at_ = "127.0.0.1:0";
  std::vector<std::string> environment_;
};

TEST_F(NeighboursTest, AnotherUsersServerIsReachedByCopy) {
  const std::string said = Call({kNobody}, {});
  ExpectAllEchoed(said);
  EXPECT_THAT(said, HasSubstr("path shm"));
  EXPECT_THAT(said, HasSubstr("copied: another user (uid 65534)"));
}

TEST_F(NeighboursTest, AnotherUsersClientIsServedByCopy) {
  const std::string said = Call({}, {kNobody});
  ExpectAllEchoed(said);
  EXPECT_THAT(said, HasSubstr("path shm"));
  EXPECT_THAT(said, HasSubstr("copied: another user (uid 0)"));
}

TEST_F(NeighboursTest, OneOtherUserOnBothSidesCopiesNothing) {
  const std::string said = Call({kNobody}, {kNobody});
  ExpectAllEchoed(said);
  EXPECT_THAT(said, HasSubstr("path shm"));
  EXPECT_THAT(said, Not(HasSubstr("copied")));
}

TEST_F(NeighboursTest, TlsStaysInTlsBetweenUsers) {
  UseTls();
  for (const auto& users :
       {std::make_pair(Flags{"tls", kNobody}, Flags{"tls"}),
        std::make_pair(Flags{"tls"}, Flags{"tls", kNobody})}) {
    const std::string said = Call(users.first, users.second);
    ExpectAllEchoed(said);
    EXPECT_THAT(said, HasSubstr("path tcp"));
    EXPECT_THAT(said, HasSubstr("peer runs as uid"));
    EXPECT_THAT(said, HasSubstr("promises privacy"));
  }
}

TEST_F(NeighboursTest, TlsOfOneUserUsesSharedMemory) {
  UseTls();
  const std::string said = Call({"tls"}, {"tls"});
  ExpectAllEchoed(said);
  EXPECT_THAT(said, HasSubstr("path shm"));
}

TEST_F(NeighboursTest, ProcessIdsDoNotMatter) {
  for (const auto& sides : {std::make_pair(Flags{"pid"}, Flags{}),
                            std::make_pair(Flags{}, Flags{"pid"})}) {
    const std::string said = Call(sides.first, sides.second);
    if (said == "may not\n") GTEST_SKIP() << "no CLONE_NEWPID here";
    ExpectAllEchoed(said);
    EXPECT_THAT(said, HasSubstr("path shm"));
  }
}

TEST_F(NeighboursTest, AnotherNetworkIsExplained) {
  listen_at_ = absl::StrCat("unix:", directory_, "/grpc");
  const std::string said = Call({}, {"net"});
  if (said == "may not\n") GTEST_SKIP() << "no CLONE_NEWNET here";
  ExpectAllEchoed(said);
  EXPECT_THAT(said, HasSubstr("path tcp"));
  EXPECT_THAT(said, HasSubstr("another network namespace"));
  EXPECT_THAT(said, HasSubstr("set PENSTOCK_SHM_DIRECTORY on both sides"));
}

TEST_F(NeighboursTest, DirectoryJoinsNetworks) {
  listen_at_ = absl::StrCat("unix:", directory_, "/grpc");
  const std::string shared = "directory=" + directory_;
  const std::string said = Call({shared}, {"net", shared});
  if (said == "may not\n") GTEST_SKIP() << "no CLONE_NEWNET here";
  ExpectAllEchoed(said);
  EXPECT_THAT(said, HasSubstr("path shm"));
}

TEST_F(NeighboursTest, DirectoryJoinsNetworksOfTwoUsers) {
  listen_at_ = absl::StrCat("unix:", directory_, "/grpc");
  const std::string shared = "directory=" + directory_;
  const std::string said = Call({shared, kNobody}, {"net", shared});
  if (said == "may not\n") GTEST_SKIP() << "no CLONE_NEWNET here";
  ExpectAllEchoed(said);
  EXPECT_THAT(said, HasSubstr("path shm"));
  EXPECT_THAT(said, HasSubstr("copied: another user (uid 65534)"));
}

TEST_F(NeighboursTest, NoMemoryForARingIsTcpWithTheReason) {
  const std::string of_client = Call({}, {"fsize=65536"});
  ExpectAllEchoed(of_client);
  EXPECT_THAT(of_client, HasSubstr("path tcp"));
  EXPECT_THAT(of_client, HasSubstr("raise it (ulimit -f, RLIMIT_FSIZE)"));
  const std::string of_server = Call({"fsize=65536"}, {});
  ExpectAllEchoed(of_server);
  EXPECT_THAT(of_server, HasSubstr("path tcp"));
  // Accepts either of two texts. The server's text comes over tcp, and may
  // arrive after the end of the UNIX socket.
  EXPECT_THAT(of_server, AnyOf(HasSubstr("raise it (ulimit -f, RLIMIT_FSIZE)"),
                               HasSubstr("has no memory to share")));
}

// Tests a limit that allows rings but no arena, so that large messages use tcp.
TEST_F(NeighboursTest, NoMemoryForMessagesLosesNone) {
  for (const auto& sides :
       {std::make_pair(Flags{"fsize=1048576"}, Flags{}),
        std::make_pair(Flags{}, Flags{"fsize=1048576"}),
        std::make_pair(Flags{"fsize=1048576"}, Flags{"fsize=1048576"})}) {
    const std::string said = Call(sides.first, sides.second);
    ExpectAllEchoed(said);
    EXPECT_THAT(said, HasSubstr("path shm"));
  }
}

// Tests an arena that has its first segment, but cannot grow enough.
TEST_F(NeighboursTest, ArenaThatCannotGrowLosesNoMessage) {
  const std::string said = Call({"fsize=20000000"}, {"fsize=20000000"});
  ExpectAllEchoed(said);
  EXPECT_THAT(said, HasSubstr("path shm"));
}

}  // namespace
}  // namespace penstock::e2e
