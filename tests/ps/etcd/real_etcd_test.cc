// Tests the client and the mirror against a real etcd.

#include "tests/ps/etcd/real_etcd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "ps/etcd/client.h"
#include "ps/etcd/mirror.h"
#include "third_party/etcd/rpc.grpc.pb.h"
#include "transport/base/steady_time.h"

namespace penstock::ps::etcd {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kTimeout = absl::Seconds(10);

Client::Options To(const RealEtcd& etcd) {
  Client::Options options;
  options.endpoints = {etcd.address()};
  return options;
}

absl::Status Put(Client* client, const std::string& key,
                 const std::string& value, int64_t lease = 0) {
  etcdserverpb::TxnRequest request;
  auto* const put = request.add_success()->mutable_request_put();
  put->set_key(key);
  put->set_value(value);
  put->set_lease(lease);
  return client->Txn(request, kTimeout).status();
}

bool Await(Mirror* mirror, const std::string& key, bool is_there) {
  return mirror->Await(
      [&](const Values& values) {
        return (values.count(key) == 1) == is_there;
      },
      base::SteadyNow() + absl::Seconds(20));
}

TEST(RealEtcdTest, MirrorFollowsWritesLeasesAndCompactions) {
  SKIP_WITHOUT_ETCD();
  const auto etcd = RealEtcd::Start();
  ASSERT_NE(etcd, nullptr);
  Client client(To(*etcd));
  Mirror mirror(&client, "t/");
  const auto lease = client.GrantLease(absl::Seconds(1), kTimeout);
  ASSERT_TRUE(lease.ok()) << lease.status();
  ASSERT_TRUE(Put(&client, "t/kept", "1").ok());
  ASSERT_TRUE(Put(&client, "t/leased", "2", *lease).ok());
  EXPECT_TRUE(Await(&mirror, "t/kept", true));
  EXPECT_TRUE(Await(&mirror, "t/leased", true));
  const auto kept = client.KeepLeaseAlive(*lease, kTimeout);
  EXPECT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(Await(&mirror, "t/leased", false));
  EXPECT_TRUE(
      absl::IsNotFound(client.KeepLeaseAlive(*lease, kTimeout).status()));
  EXPECT_TRUE(client.RevokeLease(*lease, kTimeout).ok());
}

TEST(RealEtcdTest, AWatchOfCompactedRevisionsSaysSo) {
  SKIP_WITHOUT_ETCD();
  const auto etcd = RealEtcd::Start();
  ASSERT_NE(etcd, nullptr);
  Client client(To(*etcd));
  for (const char* value : {"1", "2", "3"}) {
    ASSERT_TRUE(Put(&client, "t/a", value).ok());
  }
  etcdserverpb::CompactionRequest request;
  request.set_revision(client.history()->floor());
  request.set_physical(true);
  {
    grpc::ClientContext context;
    etcdserverpb::CompactionResponse reply;
    ASSERT_TRUE(etcdserverpb::KV::NewStub(client.endpoint().channel)
                    ->Compact(&context, request, &reply)
                    .ok());
  }
  // Reads the copy of a client that was disconnected since the first write.
  grpc::ClientContext context;
  const auto stub = etcdserverpb::Watch::NewStub(client.endpoint().channel);
  const auto stream = stub->Watch(&context);
  etcdserverpb::WatchRequest watch;
  watch.mutable_create_request()->set_key("t/a");
  watch.mutable_create_request()->set_start_revision(2);
  stream->Write(watch);
  Copy copy;
  etcdserverpb::RangeResponse first;
  first.mutable_header()->set_revision(1);
  copy.Read(first);
  etcdserverpb::WatchResponse response;
  while (!response.canceled() && stream->Read(&response)) copy.Apply(response);
  EXPECT_TRUE(copy.wants_read());
  context.TryCancel();
  stream->Finish();
}

TEST(RealEtcdTest, AStoppedEtcdIsWaitedFor) {
  SKIP_WITHOUT_ETCD();
  const auto etcd = RealEtcd::Start();
  ASSERT_NE(etcd, nullptr);
  Client::Options options = To(*etcd);
  options.patience = absl::Milliseconds(200);
  Client client(options);
  Mirror mirror(&client, "t/");
  ASSERT_TRUE(Put(&client, "t/a", "1").ok());
  ASSERT_TRUE(Await(&mirror, "t/a", true));
  etcd->process()->Suspend();
  EXPECT_TRUE(absl::IsUnavailable(
      client.ReadPrefix("t/", absl::Milliseconds(300)).status()));
  EXPECT_EQ(mirror.values().size(), 1u);
  etcd->process()->Resume();
  EXPECT_TRUE(Put(&client, "t/b", "2").ok());
  EXPECT_TRUE(Await(&mirror, "t/b", true));
}

// Turns on etcd's users: root, and a user who may only use keys below "mine/".
void AddUsers(Client* client) {
  const auto stub = etcdserverpb::Auth::NewStub(client->endpoint().channel);
  for (const char* name : {"root", "me"}) {
    grpc::ClientContext user_context, role_context, grant_context;
    etcdserverpb::AuthUserAddRequest user;
    user.set_name(name);
    user.set_password("secret");
    etcdserverpb::AuthUserAddResponse added;
    ASSERT_TRUE(stub->UserAdd(&user_context, user, &added).ok());
    etcdserverpb::AuthRoleAddRequest role;
    role.set_name(name);
    etcdserverpb::AuthRoleAddResponse role_added;
    ASSERT_TRUE(stub->RoleAdd(&role_context, role, &role_added).ok());
    etcdserverpb::AuthUserGrantRoleRequest grant;
    grant.set_user(name);
    grant.set_role(name);
    etcdserverpb::AuthUserGrantRoleResponse granted;
    ASSERT_TRUE(stub->UserGrantRole(&grant_context, grant, &granted).ok());
  }
  grpc::ClientContext permit_context, enable_context;
  etcdserverpb::AuthRoleGrantPermissionRequest permit;
  permit.set_name("me");
  permit.mutable_perm()->set_permtype(authpb::Permission::READWRITE);
  permit.mutable_perm()->set_key("mine/");
  permit.mutable_perm()->set_range_end(EndOfPrefix("mine/"));
  etcdserverpb::AuthRoleGrantPermissionResponse permitted;
  ASSERT_TRUE(
      stub->RoleGrantPermission(&permit_context, permit, &permitted).ok());
  etcdserverpb::AuthEnableRequest enable;
  etcdserverpb::AuthEnableResponse enabled;
  ASSERT_TRUE(stub->AuthEnable(&enable_context, enable, &enabled).ok());
}

TEST(RealEtcdTest, UsersMayUseTheirKeysOnly) {
  SKIP_WITHOUT_ETCD();
  const auto etcd = RealEtcd::Start();
  ASSERT_NE(etcd, nullptr);
  Client nobody(To(*etcd));
  AddUsers(&nobody);
  const absl::Status refused = nobody.ReadPrefix("mine/", kTimeout).status();
  EXPECT_TRUE(absl::IsUnauthenticated(refused)) << refused;
  Client::Options options = To(*etcd);
  options.user = "me";
  options.password = "secret";
  Client me(options);
  Mirror mirror(&me, "mine/");
  EXPECT_TRUE(Put(&me, "mine/a", "1").ok());
  EXPECT_TRUE(Await(&mirror, "mine/a", true));
  const absl::Status denied = Put(&me, "other/a", "1");
  EXPECT_TRUE(absl::IsPermissionDenied(denied)) << denied;
  EXPECT_THAT(std::string(denied.message()), HasSubstr("grant-permission"));
  options.password = "guess";
  EXPECT_TRUE(absl::IsUnauthenticated(
      Client(options).ReadPrefix("mine/", kTimeout).status()));
}

}  // namespace
}  // namespace penstock::ps::etcd
