// Tests listening sockets that are files: which users may connect, and when the
// files are removed.

#include "transport/fabric/shm/socket_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/child.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/address.h"
#include "transport/fabric/shm/fabric.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

using testing::HasSubstr;

class SocketFile : public ::testing::Test {
 protected:
  SocketFile() {
    EXPECT_NE(mkdtemp(&directory_[0]), nullptr);
    options_.directory = directory_;
  }
  ~SocketFile() override {
    for (const std::string& name : Names()) {
      unlink(absl::StrCat(directory_, "/", name).c_str());
    }
    rmdir(directory_.c_str());
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    DIR* entries = opendir(directory_.c_str());
    while (const dirent* entry = readdir(entries)) {
      if (entry->d_name[0] != '.') names.push_back(entry->d_name);
    }
    closedir(entries);
    return names;
  }
  // Returns the path of a socket whose listener has gone.
  std::string Dead(time_t age) const {
    const SocketAddress address{NewSocketName().value(), directory_};
    EXPECT_TRUE(ListenAt(address).ok());  // the listener is closed immediately
    SetAge(PathOf(address), age);
    return PathOf(address);
  }
  static void SetAge(const std::string& path, time_t age) {
    const timespec then = {time(nullptr) - age, 0};
    const timespec times[] = {then, then};
    EXPECT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  static bool Exists(const std::string& path) {
    return access(path.c_str(), F_OK) == 0;
  }
  std::string OfferError() {
    ShmFabric fabric(options_);
    return std::string(fabric.Offer().status().message());
  }

  std::string directory_ = "/tmp/penstock-test-XXXXXX";
  Options options_;
};

TEST_F(SocketFile, ConnectsAndGoesWithItsFabric) {
  {
    ShmFabric fabric(options_);
    EXPECT_NE(MakePair(&fabric, &fabric), nullptr);
    ASSERT_EQ(Names().size(), 1u);
    EXPECT_TRUE(IsSocketName(Names()[0]));
    struct stat status;
    ASSERT_EQ(stat(absl::StrCat(directory_, "/", Names()[0]).c_str(), &status),
              0);
    EXPECT_TRUE(S_ISSOCK(status.st_mode));
    EXPECT_EQ(status.st_mode & 0777, 0666u);
  }
  EXPECT_TRUE(WaitUntil([this] { return Names().empty(); }));
}

TEST_F(SocketFile, GoesWithItsProcess) {
  ForkedChild child([this] {
    // A fabric that is never destroyed, like the fabric of a process. Static,
    // so that no leak is reported.
    static auto* const fabric = new ShmFabric(options_);
    EXPECT_TRUE(fabric->Offer().ok());
    EXPECT_EQ(Names().size(), 1u);
    std::exit(testing::Test::HasFailure() ? 1 : 0);
  });
  EXPECT_TRUE(child.Join());
  EXPECT_TRUE(Names().empty());
}

TEST_F(SocketFile, StaysWhenAForkedChildOfItsProcessEnds) {
  ShmFabric fabric(options_);
  ASSERT_TRUE(fabric.Offer().ok());
  ForkedChild child([] { std::exit(0); });
  EXPECT_TRUE(child.Join());
  EXPECT_EQ(Names().size(), 1u);
  EXPECT_NE(MakePair(&fabric, &fabric), nullptr);
}

TEST_F(SocketFile, OneOfAKilledProcessIsRemovedByTheNext) {
  const std::string old = Dead(60);
  // Makes a young socket, whose owner may still begin to listen.
  const std::string young = Dead(0);
  ShmFabric living(options_);
  ASSERT_TRUE(living.Offer().ok());
  const std::string unrelated = absl::StrCat(directory_, "/penstock-data");
  close(open(unrelated.c_str(), O_CREAT | O_CLOEXEC, 0600));
  for (const std::string& name : Names()) {
    const std::string path = absl::StrCat(directory_, "/", name);
    if (path != young) SetAge(path, 60);
  }
  ShmFabric next(options_);
  ASSERT_TRUE(next.Offer().ok());
  EXPECT_FALSE(Exists(old));
  EXPECT_TRUE(Exists(young));
  EXPECT_TRUE(Exists(unrelated));
  EXPECT_NE(MakePair(&living, &next), nullptr);
}

TEST_F(SocketFile, DirectoryThatOthersMayChangeIsRefused) {
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  EXPECT_THAT(OfferError(), HasSubstr("use chmod +t on it"));
  ASSERT_EQ(chmod(directory_.c_str(), 0770), 0);
  EXPECT_THAT(OfferError(), HasSubstr("use chmod +t on it"));
  ASSERT_EQ(chmod(directory_.c_str(), 01777), 0);
  EXPECT_EQ(OfferError(), "");
}

TEST_F(SocketFile, ConnectingSideRefusesSuchADirectoryToo) {
  ShmFabric server(options_);
  const std::string offer = server.Offer().value();
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  ShmFabric client(options_);
  Outcome outcome;
  auto connect = client.Connect(offer, NewTestToken(), outcome.callback());
  EXPECT_THAT(std::string(outcome.Take().status().message()),
              HasSubstr("use chmod +t on it"));
}

TEST_F(SocketFile, DirectoryOfAThirdUserIsRefused) {
  if (!IsRoot()) GTEST_SKIP() << "needs root to give the directory away";
  ASSERT_EQ(chown(directory_.c_str(), kOtherUid, kOtherUid), 0);
  EXPECT_THAT(OfferError(), HasSubstr(absl::StrCat("the owner of ", directory_,
                                                   ", uid 12345")));
  EXPECT_TRUE(CheckDirectory(directory_, kOtherUid).ok());
}

// A directory inside the test's own, in which no other user can do anything.
class SocketFileBelow : public SocketFile {
 protected:
  SocketFileBelow() {
    EXPECT_EQ(mkdir(above_.c_str(), 0700), 0);
    EXPECT_EQ(mkdir(below_.c_str(), 0700), 0);
  }
  ~SocketFileBelow() override {
    unlink(link_.c_str());
    rmdir(below_.c_str());
    rmdir(above_.c_str());
  }
  static std::string Error(const std::string& directory,
                           uid_t peer = geteuid()) {
    return std::string(CheckDirectory(directory, peer).message());
  }

  const std::string above_ = directory_ + "/above";
  const std::string below_ = above_ + "/below";
  const std::string link_ = directory_ + "/link";
};

TEST_F(SocketFileBelow, WhatOthersMayChangeAboveIsRefused) {
  EXPECT_EQ(Error(below_), "");
  for (mode_t mode : {0777, 0770, 0702}) {
    ASSERT_EQ(chmod(above_.c_str(), mode), 0);
    EXPECT_THAT(Error(below_), HasSubstr(above_ + "; use chmod +t on it"));
  }
  ASSERT_EQ(chmod(above_.c_str(), 01777), 0);
  EXPECT_EQ(Error(below_), "");
}

TEST_F(SocketFileBelow, WhatAThirdUserHasAboveIsRefused) {
  if (!IsRoot()) GTEST_SKIP() << "needs root to give the directory away";
  ASSERT_EQ(chown(above_.c_str(), kOtherUid, kOtherUid), 0);
  EXPECT_THAT(Error(below_),
              HasSubstr(absl::StrCat("the owner of ", above_, ", uid 12345")));
  EXPECT_EQ(Error(below_, kOtherUid), "");
}

TEST_F(SocketFileBelow, LinkOfAThirdUserIsRefused) {
  if (!IsRoot()) GTEST_SKIP() << "needs root to give the link away";
  ASSERT_EQ(symlink("above/below", link_.c_str()), 0);
  EXPECT_EQ(Error(link_), "");
  ASSERT_EQ(lchown(link_.c_str(), kOtherUid, kOtherUid), 0);
  EXPECT_THAT(Error(link_),
              HasSubstr(absl::StrCat("the owner of ", link_, ", uid 12345")));
}

TEST_F(SocketFileBelow, LinkIsFollowedToWhatItLeadsThrough) {
  ASSERT_EQ(symlink(below_.c_str(), link_.c_str()), 0);
  EXPECT_EQ(Error(link_ + "/../below/./"), "");
  ASSERT_EQ(chmod(above_.c_str(), 0777), 0);
  EXPECT_THAT(Error(link_), HasSubstr(above_ + "; use chmod +t on it"));
  EXPECT_THAT(Error(directory_ + "/above/.."), HasSubstr("use chmod +t on it"));
}

TEST_F(SocketFileBelow, LinksThatLeadNowhereEnd) {
  ASSERT_EQ(symlink("link", link_.c_str()), 0);
  EXPECT_THAT(Error(link_), HasSubstr("leads nowhere"));
  EXPECT_THAT(Error("tmp"), HasSubstr("not a path from the root"));
  EXPECT_EQ(Error("/../.."), "");
}

TEST_F(SocketFile, DirectoryThatIsNoneIsExplained) {
  options_.directory = directory_ + "/missing";
  EXPECT_THAT(OfferError(), HasSubstr("/missing: No such file"));
  options_.directory = "/dev/null";
  EXPECT_THAT(OfferError(), HasSubstr("not a directory"));
}

TEST_F(SocketFile, LongestDirectoryFits) {
  directory_ = "/tmp/" + std::string(kMaxDirectoryBytes - 11, 'd') + "XXXXXX";
  ASSERT_NE(mkdtemp(&directory_[0]), nullptr);
  ASSERT_EQ(directory_.size(), kMaxDirectoryBytes);
  options_.directory = directory_;
  {
    ShmFabric fabric(options_);
    EXPECT_NE(MakePair(&fabric, &fabric), nullptr);
  }
  EXPECT_TRUE(WaitUntil([this] { return Names().empty(); }));
  SocketAddress address{NewSocketName().value(), directory_ + "d"};
  EXPECT_TRUE(absl::IsInvalidArgument(ListenAt(address).status()));
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
