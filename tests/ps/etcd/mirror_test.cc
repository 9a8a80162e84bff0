// Tests the copy of a prefix while etcd fails and gives false answers.

#include "ps/etcd/mirror.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/synchronization/mutex.h"
#include "tests/ps/etcd/fake_etcd.h"
#include "transport/base/steady_time.h"

namespace penstock::ps::etcd {
namespace {

class MirrorTest : public testing::Test {
 protected:
  MirrorTest() : client_(etcd_.ClientOptions()) {}

  static absl::Time Limit() { return base::SteadyNow() + absl::Seconds(20); }

  // Blocks until the copy has this value; an empty value means no key.
  bool AwaitValue(const std::string& key, const std::string& value) {
    return mirror_->Await(
        [&](const Values& values) {
          const auto found = values.find(key);
          return found == values.end() ? value.empty()
                                       : found->second.value() == value;
        },
        Limit());
  }

  // Blocks until the status has this code.
  bool AwaitStatus(absl::StatusCode code) {
    absl::MutexLock lock(&mu_);
    const absl::Time limit = Limit();
    while (mirror_->status().code() != code && base::SteadyNow() < limit) {
      changed_.WaitUntil(&mu_, base::SteadyNow() + absl::Milliseconds(50));
    }
    return mirror_->status().code() == code;
  }

  void Start() {
    mirror_ = std::make_unique<Mirror>(&client_, "t/", [this] {
      absl::MutexLock lock(&mu_);
      changed_.Signal();
    });
  }

  FakeEtcd etcd_;
  Client client_;
  absl::Mutex mu_;
  base::SteadyCondVar changed_;
  std::unique_ptr<Mirror> mirror_;
};

TEST_F(MirrorTest, FollowsItsPrefix) {
  etcd_.Put("t/a", "1");
  etcd_.Put("u/a", "other");
  Start();
  ASSERT_TRUE(AwaitValue("t/a", "1"));
  etcd_.Put("t/b", "2");
  EXPECT_TRUE(AwaitValue("t/b", "2"));
  etcd_.Delete("t/a");
  EXPECT_TRUE(AwaitValue("t/a", ""));
  EXPECT_EQ(mirror_->values().size(), 1u);
}

TEST_F(MirrorTest, AStreamThatEndsIsResumedWithoutARead) {
  Start();
  etcd_.AwaitWatches(1);
  etcd_.EndStreams();
  etcd_.Put("t/a", "1");
  EXPECT_TRUE(AwaitValue("t/a", "1"));
  EXPECT_EQ(etcd_.reads(), 1);
}

TEST_F(MirrorTest, ACompactedHistoryIsReadAnew) {
  etcd_.Put("t/a", "1");
  Start();
  etcd_.AwaitWatches(1);
  etcd_.SetAway(true);
  etcd_.Delete("t/a");
  etcd_.Put("t/b", "2");
  etcd_.CompactAndEndStreams();
  etcd_.SetAway(false);
  EXPECT_TRUE(AwaitValue("t/b", "2"));
  EXPECT_TRUE(AwaitValue("t/a", ""));
  EXPECT_EQ(etcd_.reads(), 2);
}

TEST_F(MirrorTest, WhatIsKnownStaysWhileEtcdIsAway) {
  etcd_.Put("t/a", "1");
  Start();
  ASSERT_TRUE(AwaitValue("t/a", "1"));
  etcd_.SetAway(true);
  ASSERT_TRUE(AwaitStatus(absl::StatusCode::kUnavailable));
  EXPECT_EQ(mirror_->values().size(), 1u);
  etcd_.SetAway(false);
  EXPECT_TRUE(AwaitStatus(absl::StatusCode::kOk));
}

TEST_F(MirrorTest, ARestoredEtcdChangesNothing) {
  etcd_.Put("t/a", "old");
  const EtcdState backup = etcd_.Save();
  etcd_.Put("t/a", "new");
  Start();
  ASSERT_TRUE(AwaitValue("t/a", "new"));
  etcd_.Restore(backup);
  ASSERT_TRUE(AwaitStatus(absl::StatusCode::kDataLoss));
  EXPECT_TRUE(AwaitValue("t/a", "new"));
}

TEST_F(MirrorTest, AnotherClusterChangesNothing) {
  etcd_.Put("t/a", "1");
  Start();
  ASSERT_TRUE(AwaitValue("t/a", "1"));
  etcd_.LieOfCluster(99);
  etcd_.Put("t/a", "2");
  ASSERT_TRUE(AwaitStatus(absl::StatusCode::kDataLoss));
  EXPECT_EQ(mirror_->values().at("t/a").value(), "1");
}

TEST_F(MirrorTest, AWatchWhoseTokenIsForgottenIsMadeAnew) {
  etcd_.RequireUser("me", "secret");
  Client::Options options = etcd_.ClientOptions();
  options.user = "me";
  options.password = "secret";
  Client client(options);
  mirror_ = std::make_unique<Mirror>(&client, "t/");
  etcd_.AwaitWatches(1);
  etcd_.ForgetTokens();
  etcd_.EndStreams();
  etcd_.Put("t/a", "1");
  EXPECT_TRUE(AwaitValue("t/a", "1"));
  mirror_.reset();  // destroyed before the client
}

TEST_F(MirrorTest, AwaitEndsAtItsDeadline) {
  Start();
  EXPECT_FALSE(mirror_->Await([](const Values&) { return false; },
                              base::SteadyNow() + absl::Milliseconds(50)));
}

}  // namespace
}  // namespace penstock::ps::etcd
