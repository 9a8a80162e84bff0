// Tests a drain whose command sees etcd late.

#include <gtest/gtest.h>

#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ps/membership/agreements.h"
#include "ps/membership/membership.h"
#include "ps/replication/replica_list.h"
#include "ps/replication/view_wire.h"
#include "ps/views/moving.h"
#include "tests/ps/views/nodes.h"

namespace penstock::ps::views {
namespace {

using replication::PartsOf;

using LateDrainTest = NodesTest;

// The first view is made before the mark, and the command sees neither.
TEST_F(LateDrainTest, ADrainThatSeesEtcdLateAsksForTheNewestView) {
  etcd::FakeEtcd late(&etcd_);
  late.HoldEvents();
  late.HoldWritesOf("t/leaving/ps1");
  const auto member = membership::Membership::Open(
      absl::StrCat("etcd://", late.address(), "/t"));
  ASSERT_TRUE(member.ok()) << member.status();
  MovingOptions options;
  options.member = member->get();
  options.timeout = kTimeout;
  absl::Status drained;
  std::thread command([&] { drained = DrainServer(options, "ps1"); });
  const replication::ReplicaId ps1 = nodes_[1]->replicas.self();
  late.AwaitHeldWrite();
  Begin();
  EXPECT_EQ(PartsOf(nodes_[0]->replicas.view(), ps1), 2u);
  late.HoldWritesOf("");
  command.join();
  ASSERT_TRUE(drained.ok()) << drained;
  const auto newest = membership::ReadView((*member)->registry());
  ASSERT_TRUE(newest.ok()) << newest.status();
  const auto view = replication::FromBytes((*newest)->decision());
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(PartsOf(*view, ps1), 0u);
}

}  // namespace
}  // namespace penstock::ps::views
