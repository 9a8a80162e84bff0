#include "ps/greeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::ps {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(GreetingTest, TheAddressHasTheRealPort) {
  EXPECT_EQ(AddressForWorkers({"127.0.0.1:0", 41, "node7"}), "127.0.0.1:41");
  EXPECT_EQ(AddressForWorkers({"[::1]:0", 41, "node7"}), "[::1]:41");
  EXPECT_EQ(AddressForWorkers({"ps0:50", 50, "node7"}), "ps0:50");
}

TEST(GreetingTest, AllAddressesAreReachedByTheMachinesName) {
  EXPECT_EQ(AddressForWorkers({"0.0.0.0:0", 41, "node7"}), "node7:41");
  EXPECT_EQ(AddressForWorkers({"[::]:50", 50, "node7"}), "node7:50");
}

TEST(GreetingTest, ALocalAddressInADistantEtcdIsAWarning) {
  EXPECT_THAT(WarnOfLocalAddress("127.0.0.1:41", {"etcd-0:2379"}),
              HasSubstr("--advertise"));
  EXPECT_THAT(WarnOfLocalAddress("unix:/tmp/s", {"[::1]:2379", "etcd-0:2379"}),
              HasSubstr("unix:/tmp/s"));
  EXPECT_EQ(WarnOfLocalAddress("127.0.0.1:41", {"localhost:2379"}), "");
  EXPECT_EQ(WarnOfLocalAddress("node7:41", {"etcd-0:2379"}), "");
}

TEST(GreetingTest, AUnixSocketIsItsOwnAddress) {
  EXPECT_EQ(AddressForWorkers({"unix:/tmp/s", 1, "node7"}), "unix:/tmp/s");
}

TEST(GreetingTest, LinesSayWhoReachesTheServerAndHowItStops) {
  EXPECT_THAT(GreetingLines({"localhost:0", 41, "node7"}, 1),
              ElementsAre(AllOf(HasSubstr("listens at localhost:41, for "
                                          "workers on this machine only"),
                                HasSubstr("waits for 1 worker")),
                          AllOf(HasSubstr("ps.Worker([\"localhost:41\"]"),
                                HasSubstr("Ctrl-C stops this server"))));
  EXPECT_THAT(GreetingLines({"0.0.0.0:0", 41, "node7"}, 2)[0],
              AllOf(HasSubstr("listens at node7:41; waits for 2 workers"),
                    Not(HasSubstr("only"))));
}

}  // namespace
}  // namespace penstock::ps
