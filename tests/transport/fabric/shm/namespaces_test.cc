// Tests peers in other kernel namespaces: the cases that work, and the errors
// of the other cases.

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/child.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/address.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/peer_user.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

using testing::HasSubstr;

bool MayUnshare(int flags) {
  const pid_t child = fork();
  if (child == 0) _exit(unshare(flags) == 0 ? 0 : 1);
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

class ShmNamespaces : public ::testing::Test {
 protected:
  static std::string NewDirectory() {
    std::string path = testing::TempDir() + "/shmXXXXXX";
    if (path.size() > kMaxDirectoryBytes) path = "/tmp/shmXXXXXX";
    EXPECT_NE(mkdtemp(&path[0]), nullptr);
    return path;
  }
  static Options In(const std::string& directory) {
    Options options;
    options.directory = directory;
    return options;
  }
  // Sends and receives one packet, as the child.
  static void Talk(ShmFabric* fabric, const std::string& offer,
                   const std::string& token) {
    Outcome outcome;
    auto connect = fabric->Connect(offer, token, outcome.callback());
    auto endpoint = outcome.Take();
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    Recorder events;
    (*endpoint)->Start(&events);
    EXPECT_TRUE((*endpoint)->capabilities().can_load);
    ASSERT_TRUE(Send(endpoint->get(), "ping"));
    EXPECT_TRUE(WaitUntil([&] {
      (*endpoint)->Poll();
      return !events.packets.empty();
    }));
  }
  static void Answer(Outcome* listened) {
    auto endpoint = listened->Take();
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    Recorder events;
    (*endpoint)->Start(&events);
    EXPECT_TRUE(WaitUntil([&] {
      (*endpoint)->Poll();
      return !events.packets.empty();
    }));
    EXPECT_TRUE(Send(endpoint->get(), "pong"));
    EXPECT_TRUE(WaitUntil([&] {
      (*endpoint)->Poll();
      return !events.broken.empty();
    }));
  }
  static absl::Status Refusal(ShmFabric* fabric, const std::string& offer) {
    Outcome outcome;
    auto connect = fabric->Connect(offer, NewTestToken(), outcome.callback());
    return outcome.Take().status();
  }

  const std::string token_ = NewTestToken();
  Outcome listened_;
};

TEST_F(ShmNamespaces, ProcessIdsDoNotMatter) {
  if (!MayUnshare(CLONE_NEWPID)) GTEST_SKIP() << "no CLONE_NEWPID here";
  ShmFabric server;
  const std::string offer = server.Offer().value();
  auto listen = server.Listen(token_, listened_.callback());
  ForkedChild child([&] {
    ASSERT_EQ(unshare(CLONE_NEWPID), 0);
    ForkedChild inner([&] {
      EXPECT_EQ(getpid(), 1);
      ShmFabric fabric;
      Talk(&fabric, offer, token_);
    });
    EXPECT_TRUE(inner.Join());
  });
  Answer(&listened_);
  EXPECT_TRUE(child.Join());
}

TEST_F(ShmNamespaces, AnotherNetworkIsExplainedWithTheRemedy) {
  if (!MayUnshare(CLONE_NEWNET)) GTEST_SKIP() << "no CLONE_NEWNET here";
  ShmFabric server;
  const std::string offer = server.Offer().value();
  ForkedChild child([&] {
    ASSERT_EQ(unshare(CLONE_NEWNET), 0);
    ShmFabric fabric;
    const absl::Status status = Refusal(&fabric, offer);
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("on this host, but in another network namespace"));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("set PENSTOCK_SHM_DIRECTORY on both sides"));
  });
  EXPECT_TRUE(child.Join());
}

TEST_F(ShmNamespaces, DirectoryJoinsNetworks) {
  if (!MayUnshare(CLONE_NEWNET)) GTEST_SKIP() << "no CLONE_NEWNET here";
  const std::string directory = NewDirectory();
  ShmFabric server(In(directory));
  const std::string offer = server.Offer().value();
  auto listen = server.Listen(token_, listened_.callback());
  ForkedChild child([&] {
    ASSERT_EQ(unshare(CLONE_NEWNET), 0);
    ShmFabric fabric(In(directory));
    Talk(&fabric, offer, token_);
  });
  Answer(&listened_);
  EXPECT_TRUE(child.Join());
}

TEST_F(ShmNamespaces, DirectoryOfThePeerAloneIsExplained) {
  const std::string directory = NewDirectory();
  ShmFabric server(In(directory));
  const std::string offer = server.Offer().value();
  ShmFabric without;
  const absl::Status missing = Refusal(&without, offer);
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr("the peer listens in its directory " + directory));
  EXPECT_THAT(std::string(missing.message()),
              HasSubstr("set PENSTOCK_SHM_DIRECTORY here"));
  ShmFabric elsewhere(In(NewDirectory()));
  const absl::Status wrong = Refusal(&elsewhere, offer);
  EXPECT_THAT(std::string(wrong.message()),
              HasSubstr("is not the directory where the peer listens"));
}

// Tests a user whose uid is not mapped. In a new user namespace without a uid
// map, every user appears as the overflow uid. Therefore two users with this
// uid may be different users.
TEST_F(ShmNamespaces, UserWithoutANumberIsRefused) {
  if (!MayUnshare(CLONE_NEWUSER)) GTEST_SKIP() << "no CLONE_NEWUSER here";
  ShmFabric server;
  const std::string offer = server.Offer().value();
  ForkedChild child([&] {
    ASSERT_EQ(unshare(CLONE_NEWUSER), 0);
    ShmFabric fabric;
    const absl::Status status = Refusal(&fabric, offer);
    EXPECT_TRUE(absl::IsPermissionDenied(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("has no number in this process's user namespace"));
  });
  EXPECT_TRUE(child.Join());
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
