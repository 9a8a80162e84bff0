// Tests registrations and agreements against an etcd that fails and gives false
// answers.

#include "ps/membership/registration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "ps/membership/agreements.h"
#include "ps/membership/keys.h"
#include "ps/membership/members.h"
#include "ps/membership/membership.h"
#include "ps/membership/target.h"
#include "tests/ps/etcd/fake_etcd.h"
#include "transport/base/steady_time.h"

namespace penstock::ps::membership {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string Text(const absl::Status& status) { return status.ToString(); }

class MembershipTest : public testing::Test {
 protected:
  MembershipTest() : client_(etcd_.ClientOptions()) {
    registry_ = *Registry::Open(&client_, "t");
  }

  // Returns options with a lease so short that it is renewed every 100 ms.
  Registration::Options Server(const std::string& name, uint64_t incarnation) {
    v1::Server server;
    server.set_name(name);
    server.set_address("host:" + std::to_string(incarnation));
    server.set_incarnation(incarnation);
    server.set_servers(1);
    Registration::Options options = *ServerOptions(registry_.get(), server);
    options.time_to_live = absl::Milliseconds(300);
    options.patience = absl::ZeroDuration();
    options.log = [this](const std::string& line) {
      absl::MutexLock lock(&mu_);
      lines_.push_back(line);
    };
    return options;
  }

  static std::unique_ptr<Registration> Registered(
      Registration::Options options) {
    auto registration = Registration::Register(std::move(options));
    EXPECT_TRUE(registration.ok()) << registration.status();
    return registration.ok() ? *std::move(registration) : nullptr;
  }

  // Blocks until `is_true` returns true. The thread of a registration makes the
  // change.
  bool Eventually(const std::function<bool()>& is_true) {
    etcd::Cancel pause;
    const absl::Time limit = base::SteadyNow() + absl::Seconds(20);
    while (!is_true() && base::SteadyNow() < limit) {
      pause.WaitUntil(base::SteadyNow() + absl::Milliseconds(20));
    }
    return is_true();
  }

  bool HasKey(const std::string& key) {
    return etcd_.Save().values.count("t/" + key) == 1;
  }

  etcd::FakeEtcd etcd_;
  etcd::Client client_;
  std::unique_ptr<Registry> registry_;
  absl::Mutex mu_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mu_);
};

TEST_F(MembershipTest, AKeyLivesAsLongAsItsRegistration) {
  auto registration = Registered(Server("a", 1));
  EXPECT_TRUE(HasKey("servers/a"));
  EXPECT_GT(registration->valid_until(), base::SteadyNow());
  registration.reset();
  EXPECT_FALSE(HasKey("servers/a"));
  EXPECT_TRUE(etcd_.Save().leases.empty());
}

TEST_F(MembershipTest, TheSecondServerOfANameIsRefused) {
  const auto first = Registered(Server("a", 1));
  const absl::Status second = Registration::Register(Server("a", 2)).status();
  EXPECT_TRUE(absl::IsAlreadyExists(second)) << second;
  EXPECT_THAT(Text(second), AllOf(HasSubstr("server a is taken"),
                                  HasSubstr("the server at host:1")));
  EXPECT_EQ(etcd_.Save().leases.size(), 1u);
}

TEST_F(MembershipTest, AChiefInTwoPlacesIsRefused) {
  v1::Worker chief;
  chief.set_incarnation(1);
  chief.set_host("first-host");
  const auto first = Registered(WorkerOptions(registry_.get(), chief));
  chief.set_incarnation(2);
  Registration::Options options = WorkerOptions(registry_.get(), chief);
  options.patience = absl::ZeroDuration();
  const absl::Status second = Registration::Register(options).status();
  EXPECT_TRUE(absl::IsAlreadyExists(second)) << second;
  EXPECT_THAT(Text(second), AllOf(HasSubstr("worker 0 (the chief) is taken"),
                                  HasSubstr("first-host")));
}

TEST_F(MembershipTest, TheNameOfADeadServerIsWaitedFor) {
  // The key of a killed server, which stays until the server's lease ends.
  v1::Server dead;
  dead.set_name("a");
  const auto lease = client_.GrantLease(absl::Seconds(10), absl::Seconds(5));
  ASSERT_TRUE(registry_->Write("servers/a", dead.SerializeAsString(), 0, *lease)
                  ->is_done);
  Registration::Options options = Server("a", 2);
  options.patience = absl::Seconds(20);
  std::thread end([this, leases = etcd_.Save().leases.size()] {
    // Waits until the other process has requested a lease.
    EXPECT_TRUE(Eventually([&] { return etcd_.Save().last_lease > 1; }));
    EXPECT_EQ(leases, 1u);
    etcd_.ExpireLeases();
  });
  EXPECT_NE(Registered(options), nullptr);
  end.join();
}

TEST_F(MembershipTest, AnEtcdThatComesLaterIsWaitedFor) {
  etcd_.SetAway(true);
  const auto target = absl::StrCat(kScheme, etcd_.address(), "/t");
  int asked = 0;
  const auto membership = Membership::Open(target, absl::Seconds(20), [&] {
    etcd_.SetAway(false);
    return ++asked > 1;
  });
  EXPECT_TRUE(membership.ok()) << membership.status();
  EXPECT_EQ(asked, 1);
  etcd_.SetAway(true);
  EXPECT_TRUE(
      absl::IsCancelled(FindServers({target}, absl::InfiniteDuration(), [] {
                          return true;
                        }).status()));
}

TEST_F(MembershipTest, ALostAnswerRegistersOnce) {
  etcd_.LoseNextAnswer();
  const auto registration = Registered(Server("a", 1));
  EXPECT_TRUE(HasKey("servers/a"));
}

TEST_F(MembershipTest, AnExpiredLeaseIsReplaced) {
  const auto registration = Registered(Server("a", 1));
  const int64_t lease = registration->guard().lease;
  etcd_.ExpireLeases();
  EXPECT_TRUE(Eventually([&] { return HasKey("servers/a"); }));
  EXPECT_TRUE(Eventually([&] { return registration->guard().lease != lease; }));
  const auto has_line = [this] {
    absl::MutexLock lock(&mu_);
    return lines_.size() == 1 && absl::StrContains(lines_[0], "had ended");
  };
  EXPECT_TRUE(Eventually(has_line));
}

TEST_F(MembershipTest, ADeletedKeyIsWrittenAnew) {
  const auto registration = Registered(Server("a", 1));
  etcd_.Delete("t/servers/a");
  EXPECT_TRUE(Eventually([&] { return HasKey("servers/a"); }));
}

TEST_F(MembershipTest, AServerGoesOnWhileEtcdIsAway) {
  const auto registration = Registered(Server("a", 1));
  etcd_.SetAway(true);
  EXPECT_TRUE(
      Eventually([&] { return absl::IsUnavailable(registration->status()); }));
  EXPECT_TRUE(Eventually(
      [&] { return registration->valid_until() < base::SteadyNow(); }));
  etcd_.ExpireLeases();
  etcd_.SetAway(false);
  EXPECT_TRUE(Eventually([&] { return registration->status().ok(); }));
  EXPECT_TRUE(HasKey("servers/a"));
  absl::MutexLock lock(&mu_);
  ASSERT_EQ(lines_.size(), 3u);
  EXPECT_THAT(lines_[0], HasSubstr("server a continues"));
  EXPECT_THAT(lines_[1], HasSubstr("the lease of server a had ended"));
  EXPECT_THAT(lines_[2], HasSubstr("server a is registered"));
}

TEST(PauseAfterTest, AFailedRenewalIsRepeatedSoonWhileTheLeaseLasts) {
  const absl::Duration ttl = absl::Seconds(9);
  const auto pause = [ttl](const absl::Status& status, absl::Duration left) {
    return Registration::PauseAfter(status, left, ttl);
  };
  EXPECT_EQ(pause(absl::OkStatus(), ttl), ttl / 3);
  const absl::Status away = absl::UnavailableError("away");
  EXPECT_LT(pause(away, absl::Seconds(1)), absl::Seconds(1));
  EXPECT_EQ(pause(away, -absl::InfiniteDuration()), ttl / 3);
  EXPECT_EQ(pause(absl::DataLossError("wiped"), ttl), ttl / 3);
}

TEST_F(MembershipTest, WhoseNameWasTakenMeanwhileSaysSo) {
  const auto registration = Registered(Server("a", 1));
  etcd_.SetAway(true);
  ASSERT_TRUE(
      Eventually([&] { return absl::IsUnavailable(registration->status()); }));
  etcd_.ExpireLeases();
  v1::Server other;
  other.set_name("a");
  other.set_address("other:1");
  etcd_.Put("t/servers/a", other.SerializeAsString());
  etcd_.SetAway(false);
  EXPECT_TRUE(Eventually(
      [&] { return absl::IsAlreadyExists(registration->status()); }));
  EXPECT_THAT(Text(registration->status()), HasSubstr("other:1"));
  EXPECT_EQ(registration->valid_until(), absl::InfinitePast());
}

TEST_F(MembershipTest, AWipedEtcdGetsNoRegistration) {
  const auto registration = Registered(Server("a", 1));
  // Replaces etcd by one whose revisions are already higher.
  etcd::EtcdState empty;
  empty.revision = 1000;
  etcd_.Restore(empty);
  EXPECT_TRUE(
      Eventually([&] { return absl::IsDataLoss(registration->status()); }));
  EXPECT_THAT(Text(registration->status()), HasSubstr("t/identity"));
  EXPECT_FALSE(HasKey("servers/a"));
}

TEST_F(MembershipTest, ARestoredEtcdIsRefusedByItsRevision) {
  const etcd::EtcdState backup = etcd_.Save();
  ASSERT_TRUE(AgreeOnModel(registry_.get(), "m").ok());
  etcd_.Restore(backup);
  const absl::Status status = AgreeOnModel(registry_.get(), "m");
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

TEST_F(MembershipTest, ServersAreWaitedForAndNamedIfTheyAreMissing) {
  v1::Server server;
  server.set_name("a");
  server.set_address("a:1");
  server.set_servers(2);
  etcd_.Put("t/servers/a", server.SerializeAsString());
  const absl::Status missing =
      AwaitServers(registry_.get(), absl::Milliseconds(200)).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(missing)) << missing;
  EXPECT_THAT(Text(missing),
              AllOf(HasSubstr("1 of 2 servers"), HasSubstr("a (a:1)")));
  std::thread late([this, server]() mutable {
    server.set_name("b");
    server.set_address("b:1");
    etcd_.Put("t/servers/b", server.SerializeAsString());
  });
  const auto servers = AwaitServers(registry_.get(), absl::Seconds(20));
  late.join();
  ASSERT_TRUE(servers.ok()) << servers.status();
  EXPECT_EQ(servers->size(), 2u);
}

TEST_F(MembershipTest, ServersOfAViewAreFoundWithoutThoseThatAreGone) {
  v1::Server server;
  server.set_name("b");
  server.set_address("b:1");
  server.set_servers(2);
  server.set_replicas(1);
  server.set_incarnation(7);
  etcd_.Put("t/servers/b", server.SerializeAsString());
  v1::Server spare = server;
  spare.set_name("d");
  spare.set_address("d:1");
  etcd_.Put("t/servers/d", spare.SerializeAsString());
  v1::View view;
  view.set_number(1);
  view.add_servers("b:1");
  view.add_servers("a:1");
  view.add_incarnations(7);
  view.add_incarnations(8);
  etcd_.Put("t/view", view.SerializeAsString());
  const auto servers = AwaitServers(registry_.get(), absl::Seconds(20));
  ASSERT_TRUE(servers.ok()) << servers.status();
  ASSERT_EQ(servers->size(), 2u);
  EXPECT_EQ((*servers)[0].name(), "b");
  EXPECT_EQ((*servers)[1].address(), "a:1");
  // A view with other incarnations of the servers belongs to an earlier
  // training.
  view.set_incarnations(0, 6);
  etcd_.Put("t/view", view.SerializeAsString());
  etcd_.Delete("t/servers/d");
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      AwaitServers(registry_.get(), absl::Milliseconds(200)).status()));
}

TEST_F(MembershipTest, ServersThatWantOtherReplicasDisagree) {
  v1::Server server;
  server.set_name("a");
  server.set_address("a:1");
  server.set_servers(2);
  server.set_replicas(1);
  etcd_.Put("t/servers/a", server.SerializeAsString());
  server.set_name("b");
  server.set_address("b:1");
  server.set_replicas(2);
  etcd_.Put("t/servers/b", server.SerializeAsString());
  const absl::Status status =
      AwaitServers(registry_.get(), absl::Milliseconds(200)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(Text(status), AllOf(HasSubstr("want 1 and 2 replicas"),
                                  HasSubstr("--replicas")));
}

TEST_F(MembershipTest, AWaitForServersEndsIfEtcdRefusesTheUser) {
  etcd_.RequireUser("me", "secret");
  EXPECT_TRUE(absl::IsUnauthenticated(
      AwaitServers(registry_.get(), absl::InfiniteDuration()).status()));
}

TEST_F(MembershipTest, ServersThatComeAtTheLastMomentAreFound) {
  v1::Server server;
  server.set_name("a");
  server.set_address("a:1");
  server.set_servers(1);
  etcd_.Put("t/servers/a", server.SerializeAsString());
  const auto servers = AwaitServers(registry_.get(), absl::ZeroDuration());
  ASSERT_TRUE(servers.ok()) << servers.status();
  EXPECT_EQ(servers->size(), 1u);
}

TEST_F(MembershipTest, AWaitForServersCanBeInterrupted) {
  EXPECT_TRUE(absl::IsCancelled(
      AwaitServers(registry_.get(), absl::InfiniteDuration(), [] {
        return true;
      }).status()));
}

}  // namespace
}  // namespace penstock::ps::membership
