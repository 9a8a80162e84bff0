// Tests what the members of a training agree on by etcd.

#include "ps/membership/agreements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "ps/membership/keys.h"
#include "ps/membership/registry.h"
#include "tests/ps/etcd/fake_etcd.h"

namespace penstock::ps::membership {
namespace {

using testing::HasSubstr;

class AgreementsTest : public testing::Test {
 protected:
  AgreementsTest() : client_(etcd_.ClientOptions()) {
    registry_ = *Registry::Open(&client_, "t");
  }

  etcd::FakeEtcd etcd_;
  etcd::Client client_;
  std::unique_ptr<Registry> registry_;
};

TEST_F(AgreementsTest, OneModelIsChosenOnce) {
  EXPECT_FALSE(ReadModel(registry_.get())->has_value());
  ASSERT_TRUE(AgreeOnModel(registry_.get(), "m").ok());
  EXPECT_TRUE(AgreeOnModel(registry_.get(), "m").ok());
  const absl::Status other = AgreeOnModel(registry_.get(), "n");
  EXPECT_TRUE(absl::IsFailedPrecondition(other)) << other;
  EXPECT_EQ(**ReadModel(registry_.get()), "m");
}

TEST_F(AgreementsTest, ViewsGoForwardOneByOne) {
  v1::View view;
  view.set_number(1);
  view.set_decision("a");
  ASSERT_TRUE(AdvanceView(registry_.get(), view).ok());
  EXPECT_TRUE(AdvanceView(registry_.get(), view).ok());  // a repetition
  view.set_decision("b");
  EXPECT_TRUE(absl::IsAborted(AdvanceView(registry_.get(), view)));
  view.set_number(3);
  EXPECT_TRUE(absl::IsFailedPrecondition(AdvanceView(registry_.get(), view)));
  view.set_number(2);
  etcd_.LoseNextAnswer();  // the answer to the read
  EXPECT_TRUE(AdvanceView(registry_.get(), view).ok());
  view.set_number(1);
  EXPECT_TRUE(absl::IsAborted(AdvanceView(registry_.get(), view)));
  EXPECT_EQ((**ReadView(registry_.get())).decision(), "b");
}

TEST_F(AgreementsTest, WhoHasLostItsLeaseMakesNoView) {
  const auto lease = client_.GrantLease(absl::Seconds(10), absl::Seconds(5));
  ASSERT_TRUE(registry_->Write("servers/a", "x", 0, *lease)->is_done);
  const Registry::Guard guard = {"servers/a", *lease, {}, 0};
  v1::View view;
  view.set_number(1);
  ASSERT_TRUE(AdvanceView(registry_.get(), view, guard).ok());
  etcd_.ExpireLeases();
  view.set_number(2);
  EXPECT_TRUE(absl::IsAborted(AdvanceView(registry_.get(), view, guard)));
  EXPECT_EQ((**ReadView(registry_.get())).number(), 1u);
}

TEST_F(AgreementsTest, AViewThatDoesNotKnowTheNewestMarkIsRefused) {
  const auto lease = client_.GrantLease(absl::Seconds(10), absl::Seconds(5));
  ASSERT_TRUE(registry_->Write("servers/a", "x", 0, *lease)->is_done);
  Registry::Guard guard = {"servers/a", *lease, kLeaving, 0};
  v1::View view;
  view.set_number(1);
  ASSERT_TRUE(AdvanceView(registry_.get(), view, guard).ok());
  ASSERT_TRUE(registry_->Write("leaving/a", "x", 0)->is_done);
  guard.seen = etcd_.Save().revision - 1;
  view.set_number(2);
  const absl::Status refused = AdvanceView(registry_.get(), view, guard);
  EXPECT_TRUE(absl::IsAborted(refused)) << refused;
  EXPECT_THAT(refused.ToString(), HasSubstr("t/leaving/"));
  EXPECT_EQ((**ReadView(registry_.get())).number(), 1u);
  ++guard.seen;
  EXPECT_TRUE(AdvanceView(registry_.get(), view, guard).ok());
}

TEST_F(AgreementsTest, CutsGoForwardWithinARun) {
  v1::Cut cut;
  cut.set_run(1);
  cut.set_step(100);
  ASSERT_TRUE(RecordCut(registry_.get(), cut).ok());
  EXPECT_TRUE(RecordCut(registry_.get(), cut).ok());
  cut.set_step(99);
  EXPECT_TRUE(absl::IsFailedPrecondition(RecordCut(registry_.get(), cut)));
  cut.set_run(2);
  EXPECT_TRUE(RecordCut(registry_.get(), cut).ok());
  EXPECT_EQ((**ReadCut(registry_.get())).step(), 99u);
}

TEST_F(AgreementsTest, ForeignValuesAreRefused) {
  etcd_.Put("t/view", "\xff\xff");
  EXPECT_TRUE(absl::IsDataLoss(ReadView(registry_.get()).status()));
}

}  // namespace
}  // namespace penstock::ps::membership
