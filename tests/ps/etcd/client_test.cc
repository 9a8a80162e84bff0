// Tests the client against an etcd that fails and gives false answers.

#include "ps/etcd/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/ps/etcd/fake_etcd.h"

namespace penstock::ps::etcd {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(10);
constexpr absl::Duration kSoon = absl::Milliseconds(300);

std::string Text(const absl::Status& status) { return status.ToString(); }

TEST(EndOfPrefixTest, IsTheNextKeyWithoutThePrefix) {
  EXPECT_EQ(EndOfPrefix("ab"), "ac");
  EXPECT_EQ(EndOfPrefix("a\xff"), "b");
  EXPECT_EQ(EndOfPrefix("\xff\xff"), std::string(1, '\0'));
}

TEST(ClientTest, ReadsAPrefixOnly) {
  FakeEtcd etcd;
  etcd.Put("a/1", "x");
  etcd.Put("a0", "y");
  Client client(etcd.ClientOptions());
  const auto reply = client.ReadPrefix("a/", kTimeout);
  ASSERT_TRUE(reply.ok()) << reply.status();
  ASSERT_EQ(reply->kvs_size(), 1);
  EXPECT_EQ(reply->kvs(0).value(), "x");
}

TEST(ClientTest, AnEndpointThatIsAwayIsPassedOver) {
  FakeEtcd first;
  FakeEtcd second(&first);
  first.Put("a", "x");
  first.SetAway(true);
  Client::Options options = first.ClientOptions();
  options.endpoints.push_back(second.address());
  Client client(options);
  const auto reply = client.ReadPrefix("a", kTimeout);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->kvs_size(), 1);
  EXPECT_EQ(client.endpoint().name, second.address());
}

TEST(ClientTest, AnEndpointThatFailsIsPassedOver) {
  for (const auto code :
       {grpc::StatusCode::RESOURCE_EXHAUSTED, grpc::StatusCode::INTERNAL,
        grpc::StatusCode::FAILED_PRECONDITION,
        grpc::StatusCode::UNIMPLEMENTED}) {
    FakeEtcd first;
    FakeEtcd second(&first);
    first.FailWith(code);
    Client::Options options = first.ClientOptions();
    options.endpoints.push_back(second.address());
    Client client(options);
    const absl::Status passed = client.ReadPrefix("a", kTimeout).status();
    EXPECT_TRUE(passed.ok()) << passed;
    second.FailWith(code);
    const absl::Status failed =
        client.ReadPrefix("a", absl::InfiniteDuration()).status();
    EXPECT_EQ(failed.code(), static_cast<absl::StatusCode>(code)) << failed;
  }
}

TEST(ClientTest, ErrorNamesTheEndpointsIfAllAreAway) {
  FakeEtcd etcd;
  etcd.SetAway(true);
  Client client(etcd.ClientOptions());
  const absl::Status status = client.ReadPrefix("a", kSoon).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Text(status), AllOf(HasSubstr(etcd.address()),
                                  HasSubstr("the fake etcd is unreachable")));
}

TEST(ClientTest, ErrorHasARemedyIfNothingListens) {
  Client::Options options;
  {
    FakeEtcd gone;
    options = gone.ClientOptions();
  }
  Client client(options);
  const absl::Status status = client.ReadPrefix("a", kSoon).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Text(status), HasSubstr("is etcd running"));
}

TEST(ClientTest, AnotherClusterIsRefused) {
  FakeEtcd etcd;
  Client client(etcd.ClientOptions());
  ASSERT_TRUE(client.ReadPrefix("a", kTimeout).ok());
  etcd.LieOfCluster(99);
  EXPECT_TRUE(absl::IsDataLoss(client.ReadPrefix("a", kTimeout).status()));
  EXPECT_TRUE(absl::IsDataLoss(client.GrantLease(kSoon, kTimeout).status()));
  etcd.LieOfCluster(0);
  EXPECT_TRUE(client.ReadPrefix("a", kTimeout).ok());
}

TEST(ClientTest, AnOlderRevisionIsRefused) {
  FakeEtcd etcd;
  etcd.Put("a", "1");
  etcd.Put("a", "2");
  Client client(etcd.ClientOptions());
  ASSERT_TRUE(client.ReadPrefix("a", kTimeout).ok());
  etcd.LieOfRevision(1);
  const absl::Status status = client.ReadPrefix("a", kTimeout).status();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_THAT(Text(status), HasSubstr("restored from a backup"));
  // Accepts older revisions in answers to grants and renewals. Such an answer
  // may come from a member of etcd that is behind the others.
  EXPECT_TRUE(client.GrantLease(kTimeout, kTimeout).ok());
}

TEST(ClientTest, AWriteWithoutARevisionOfItsOwnIsRefused) {
  FakeEtcd etcd;
  etcd.Put("a", "1");
  Client client(etcd.ClientOptions());
  ASSERT_TRUE(client.ReadPrefix("a", kTimeout).ok());
  etcd.LieOfRevision(client.history()->floor());
  EXPECT_TRUE(client.ReadPrefix("a", kTimeout).ok());
  etcdserverpb::TxnRequest request;
  request.add_success()->mutable_request_put()->set_key("b");
  EXPECT_TRUE(absl::IsDataLoss(client.Txn(request, kTimeout).status()));
}

TEST(ClientTest, OfTwoEtcdsTheFirstOneCounts) {
  FakeEtcd right;
  FakeEtcd other;
  other.LieOfCluster(99);
  right.Put("a", "right");
  Client::Options options = right.ClientOptions();
  options.endpoints.push_back(other.address());
  Client client(options);
  ASSERT_TRUE(client.ReadPrefix("a", kTimeout).ok());
  client.MoveOn(0);
  const auto reply = client.ReadPrefix("a", kTimeout);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->kvs_size(), 1);
  right.SetAway(true);
  EXPECT_TRUE(absl::IsDataLoss(client.ReadPrefix("a", kSoon).status()));
}

TEST(ClientTest, ALeaseIsKeptAndEnds) {
  FakeEtcd etcd;
  Client client(etcd.ClientOptions());
  const auto lease = client.GrantLease(absl::Milliseconds(1500), kTimeout);
  ASSERT_TRUE(lease.ok()) << lease.status();
  const auto kept = client.KeepLeaseAlive(*lease, kTimeout);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(*kept, absl::Seconds(2));  // rounded up
  etcd.ExpireLeases();
  EXPECT_TRUE(
      absl::IsNotFound(client.KeepLeaseAlive(*lease, kTimeout).status()));
  EXPECT_TRUE(client.RevokeLease(*lease, kTimeout).ok());
}

TEST(ClientTest, LogsInAndOnceMoreWhenTheTokenIsForgotten) {
  FakeEtcd etcd;
  etcd.RequireUser("me", "secret");
  Client::Options options = etcd.ClientOptions();
  options.user = "me";
  options.password = "secret";
  Client client(options);
  ASSERT_TRUE(client.ReadPrefix("a", kTimeout).ok());
  etcd.ForgetTokens();
  EXPECT_TRUE(client.ReadPrefix("a", kTimeout).ok());
}

TEST(ClientTest, WrongPasswordsAndMissingUsersAreRefusedAtOnce) {
  FakeEtcd etcd;
  etcd.RequireUser("me", "secret");
  Client::Options options = etcd.ClientOptions();
  EXPECT_TRUE(absl::IsUnauthenticated(
      Client(options).ReadPrefix("a", absl::InfiniteDuration()).status()));
  options.user = "me";
  options.password = "guess";
  const absl::Status status =
      Client(options).ReadPrefix("a", absl::InfiniteDuration()).status();
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(Text(status), AllOf(HasSubstr("PENSTOCK_ETCD_PASSWORD_FILE"),
                                  testing::Not(HasSubstr("guess"))));
}

TEST(ClientTest, AUserIsIgnoredByAnEtcdWithoutUsers) {
  FakeEtcd etcd;
  Client::Options options = etcd.ClientOptions();
  options.user = "me";
  options.password = "secret";
  EXPECT_TRUE(Client(options).ReadPrefix("a", kTimeout).ok());
}

TEST(ClientTest, CancelEndsAWait) {
  FakeEtcd etcd;
  etcd.SetAway(true);
  Client client(etcd.ClientOptions());
  Cancel cancel;
  absl::Status status;
  std::thread caller([&] {
    status = client.ReadPrefix("a", absl::InfiniteDuration(), &cancel).status();
  });
  cancel.Now();
  caller.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
}

}  // namespace
}  // namespace penstock::ps::etcd
