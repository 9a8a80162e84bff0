// Tests servers, as processes, that register in a real etcd.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "ps/client/training_connection.h"
#include "ps/etcd/client.h"
#include "ps/membership/membership.h"
#include "ps/membership/target.h"
#include "tests/process/child.h"
#include "tests/ps/access/certificates.h"
#include "tests/ps/etcd/fake_etcd.h"
#include "tests/ps/etcd/real_etcd.h"

namespace penstock::ps::membership {
namespace {

using etcd::RealEtcd;
using process::Child;
using testing::AllOf;
using testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(20);

std::unique_ptr<Child> StartServer(const std::vector<std::string>& flags) {
  std::vector<std::string> command = {"ps/ps_server", "--workers=1",
                                      "--memory=16MiB"};
  command.insert(command.end(), flags.begin(), flags.end());
  return Child::Start(std::move(command));
}

// Returns the server's address once it is registered.
std::string AddressOf(Child* server) {
  const auto port = server->Find("port ");
  return port ? absl::StrCat("127.0.0.1:", *port) : "no server";
}

bool Answers(const std::string& address) {
  return Describe(
             grpc::CreateChannel(address, grpc::InsecureChannelCredentials()),
             kTimeout)
      .ok();
}

TEST(ProcessTest, ServersAreFoundInTheOrderOfTheirNames) {
  SKIP_WITHOUT_ETCD();
  const auto etcd = RealEtcd::Start();
  ASSERT_NE(etcd, nullptr);
  const std::vector<std::string> common = {
      "--etcd=" + etcd->address(), "--etcd-prefix=team/t", "--servers=2"};
  std::vector<std::unique_ptr<Child>> servers;
  std::vector<std::string> addresses;
  for (const char* name : {"--name=ps-10", "--name=ps-9"}) {
    std::vector<std::string> flags = common;
    flags.push_back(name);
    servers.push_back(StartServer(flags));
    ASSERT_NE(servers.back(), nullptr);
    addresses.push_back(AddressOf(servers.back().get()));
  }
  const std::string target =
      absl::StrCat("etcd://", etcd->address(), "/team/t");
  const auto found = FindServers({target}, kTimeout);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, std::vector<std::string>({addresses[1], addresses[0]}));

  // Stops etcd. The servers must continue.
  etcd->process()->Suspend();
  EXPECT_TRUE(Answers(addresses[0]));
  EXPECT_TRUE(Answers(addresses[1]));
  etcd->process()->Resume();

  // Expects that a server that ends normally first deletes its key.
  kill(servers[0]->pid(), SIGTERM);
  servers[0]->ReadAll();
  EXPECT_EQ(servers[0]->Finish(), 0);
  const absl::Status missing =
      FindServers({target}, absl::Milliseconds(500)).status();
  EXPECT_THAT(missing.ToString(), HasSubstr("1 of 2 servers"));
}

TEST(ProcessTest, AServerServesWhileEtcdIsAwayFromTheStart) {
  etcd::FakeEtcd etcd;
  etcd.SetAway(true);
  const auto server = StartServer({"--etcd=" + etcd.address()});
  ASSERT_NE(server, nullptr);
  etcd.AwaitRefusedCall();
  kill(server->pid(), SIGTERM);
  EXPECT_THAT(server->ReadAll(), HasSubstr("stopped at version 0"));
  EXPECT_EQ(server->Finish(), 0);
}

TEST(ProcessTest, AServerThatCannotRegisterSaysWhyAndEnds) {
  etcd::FakeEtcd etcd;
  etcd.RequireUser("me", "secret");
  const auto server = StartServer({"--etcd=" + etcd.address()});
  ASSERT_NE(server, nullptr);
  EXPECT_THAT(server->ReadAll(), HasSubstr("PENSTOCK_ETCD_USER"));
  EXPECT_EQ(server->Finish(), 1);
}

TEST(ProcessTest, WrongFlagsAreNamed) {
  auto server = StartServer({"--name=a"});
  ASSERT_NE(server, nullptr);
  EXPECT_THAT(server->ReadAll(), HasSubstr("--etcd"));
  EXPECT_EQ(server->Finish(), 2);
  server = StartServer({"--etcd=127.0.0.1:1", "--etcd-prefix=/t"});
  ASSERT_NE(server, nullptr);
  EXPECT_THAT(server->ReadAll(), HasSubstr("prefix '/t'"));
  EXPECT_EQ(server->Finish(), 2);
  server = StartServer({"--etcd=127.0.0.1:1", "--servers=2", "--replicas=2"});
  ASSERT_NE(server, nullptr);
  EXPECT_THAT(server->ReadAll(), HasSubstr("needs --servers=3"));
  EXPECT_EQ(server->Finish(), 2);
}

TEST(ProcessTest, WrongAddressesAreNamed) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"--etcd=http://h:2379", "it has a scheme"},
      {"--etcd=h:2379/x", "--etcd-prefix"},
      {"--etcd=::1", "[::1]:2379"},
      {"--etcd=h:2379,", "it lacks a host"},
  };
  for (const auto& [flag, why] : wrong) {
    const auto server = StartServer({flag});
    ASSERT_NE(server, nullptr);
    EXPECT_THAT(server->ReadAll(), AllOf(HasSubstr("--etcd"), HasSubstr(why)));
    EXPECT_EQ(server->Finish(), 2);
  }
  const auto server = StartServer({"--etcd=h:2379", "--advertise=here"});
  ASSERT_NE(server, nullptr);
  EXPECT_THAT(server->ReadAll(), HasSubstr("--advertise=here"));
  EXPECT_EQ(server->Finish(), 2);
}

TEST(FindServersTest, OtherNamesStayAsTheyAre) {
  const std::vector<std::string> names = {"a:1", "b:2"};
  EXPECT_EQ(*FindServers(names, kTimeout), names);
  EXPECT_TRUE(absl::IsInvalidArgument(
      FindServers({"a:1", "etcd://b"}, kTimeout).status()));
}

// The files and variables of a process that uses etcd under TLS.
class TlsTest : public testing::Test {
 protected:
  ~TlsTest() override {
    for (const char* name : {"CA", "CERT", "KEY", "USER", "PASSWORD_FILE"}) {
      unsetenv(absl::StrCat("PENSTOCK_ETCD_", name).c_str());
    }
  }

  static std::string Write(const std::string& name, const std::string& text) {
    const std::string path = absl::StrCat(testing::TempDir(), "/", name);
    std::ofstream(path) << text;
    return path;
  }

  static void Set(const char* name, const std::string& value) {
    setenv(absl::StrCat("PENSTOCK_ETCD_", name).c_str(), value.c_str(),
           /*replace=*/1);
  }

  static absl::Status Open(const std::string& address) {
    return Membership::Open(absl::StrCat("etcd://", address, "/t")).status();
  }
};

TEST_F(TlsTest, EtcdMayAskForCertificates) {
  SKIP_WITHOUT_ETCD();
  const Authority authority;
  const Bearer server = authority.Issue({"etcd", {}, {"localhost"}});
  const std::string ca = Write("ca.pem", authority.certificate());
  const std::string cert = Write("cert.pem", server.certificate);
  const std::string key = Write("key.pem", server.key);
  const auto etcd =
      RealEtcd::Start({"--cert-file=" + cert, "--key-file=" + key,
                       "--client-cert-auth", "--trusted-ca-file=" + ca},
                      "https");
  ASSERT_NE(etcd, nullptr);
  const std::string address = absl::StrCat(
      "localhost", etcd->address().substr(etcd->address().find(':')));

  Set("CA", ca);
  Set("CERT", cert);
  EXPECT_THAT(Open(address).ToString(), HasSubstr("PENSTOCK_ETCD_KEY"));
  Set("KEY", key);
  const absl::Status opened = Open(address);
  EXPECT_TRUE(opened.ok()) << opened;
  const Authority other("other");
  Set("CA", Write("other.pem", other.certificate()));
  const auto options = ClientOptions({address});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_THAT(etcd::Client(*options)
                  .ReadPrefix("t/", absl::Milliseconds(500))
                  .status()
                  .ToString(),
              HasSubstr("has to name who signed"));
}

TEST_F(TlsTest, MissingFilesAreNamed) {
  Set("CA", "/nonexistent/ca.pem");
  EXPECT_THAT(Open("localhost:1").ToString(),
              HasSubstr("PENSTOCK_ETCD_CA=/nonexistent/ca.pem"));
  unsetenv("PENSTOCK_ETCD_CA");
  Set("USER", "me");
  EXPECT_THAT(Open("localhost:1").ToString(),
              HasSubstr("PENSTOCK_ETCD_PASSWORD_FILE"));
  Set("PASSWORD_FILE", "/nonexistent/password");
  EXPECT_THAT(Open("localhost:1").ToString(),
              HasSubstr("PENSTOCK_ETCD_PASSWORD_FILE"));
}

}  // namespace
}  // namespace penstock::ps::membership
