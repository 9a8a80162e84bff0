// Tests a training whose servers' certificates expire.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/security/credentials.h"
#include "ps/client/training_connection.h"
#include "tests/ps/access/certificates.h"
#include "tests/ps/checkpoint/test_folder.h"
#include "tests/ps/etcd/real_etcd.h"
#include "tests/ps/failover/bank.h"
#include "tests/ps/failover/servers.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

using testing::HasSubstr;

constexpr long kSeconds = 20;  // validity of a server's certificate

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(
    const Authority& authority, const Bearer& bearer) {
  return grpc::SslCredentials(
      {authority.certificate(), bearer.key, bearer.certificate});
}

// New connections to the servers fail, and existing connections continue.
TEST(ExpiryTest, ATrainingGoesOnAndNewConnectionsSayWhy) {
  SKIP_WITHOUT_ETCD();
  const checkpoint::TestFolder folder;
  const Authority authority;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder.name() + "/" + name) << text;
  };
  CertificateNames localhost;
  localhost.ips = {std::string("\x7f\0\0\1", 4)};
  const absl::Time expires = base::SteadyNow() + absl::Seconds(kSeconds);
  const Bearer server = authority.Issue(localhost, kSeconds);
  write("ca", authority.certificate());
  write("cert", server.certificate);
  write("key", server.key);
  ReplicatedServers servers(
      2, /*replicas=*/1, /*workers=*/1,
      {"--ca=" + folder.name() + "/ca", "--cert=" + folder.name() + "/cert",
       "--key=" + folder.name() + "/key"});
  const Bearer worker = authority.Issue({"worker", {}, {}, {}});
  servers.SetCredentials(CredentialsOf(authority, worker));
  Bank bank(servers.Channels(), servers.addresses(), 1);
  ASSERT_TRUE(servers.AwaitBackups()) << servers.Logs();
  bank.AwaitTransfers(10);
  absl::SleepFor(expires + absl::Seconds(2) - base::SteadyNow());
  const uint64_t before = bank.transfers();
  bank.AwaitTransfers(50);
  EXPECT_GE(bank.transfers(), before + 50) << servers.Logs();
  // Starts a worker that must get the new certificates.
  servers.SetCredentials(CredentialsOf(authority, worker));
  TrainingConnection::Options options;
  options.servers = servers.Channels();
  options.timeout = absl::Seconds(5);
  const absl::Time asked = base::SteadyNow();
  EXPECT_THAT(TrainingConnection::Open(options).status().ToString(),
              HasSubstr("certificate"));
  EXPECT_LT(base::SteadyNow() - asked, absl::Seconds(20));
  // Restarts one server, while the other server keeps running.
  servers.Kill(1);
  EXPECT_FALSE(servers.Start(1));
  EXPECT_THAT(servers.Logs(), HasSubstr("the certificate has expired"));
  bank.AwaitTransfers(20);
  EXPECT_EQ(bank.Close(), "") << servers.Logs();
}

}  // namespace
}  // namespace penstock::ps
