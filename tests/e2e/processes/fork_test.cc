// Tests processes that fork while channels are live. Some children call exec,
// which every library must survive. Others do not, which gRPC allows with
// GRPC_ENABLE_FORK_SUPPORT=1.

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/e2e/child.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// Returns the exit code of "true", run by fork and exec.
int RunTrue() {
  const pid_t pid = fork();
  if (pid == 0) {
    execlp("true", "true", nullptr);
    _exit(127);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

// Returns the descriptors that an executed program would inherit.
std::set<std::string> Inheritable() {
  std::set<std::string> found;
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    const int flags = fcntl(std::atoi(entry->d_name), F_GETFD);
    if (entry->d_name[0] == '.' || flags < 0 || (flags & FD_CLOEXEC) != 0) {
      continue;
    }
    char name[256] = {};
    const std::string link = absl::StrCat("/proc/self/fd/", entry->d_name);
    if (readlink(link.c_str(), name, sizeof name - 1) < 0) continue;
    found.insert(absl::StrCat(entry->d_name, " is ", name));
  }
  closedir(folder);
  return found;
}

class ForkTest : public ServiceTest {
 protected:
  // The inheritable descriptors before this test opens anything.
  const std::set<std::string> before_ = Inheritable();
};

TEST_P(ForkTest, StreamsGoOnBesideExecutedPrograms) {
  constexpr int kPrograms = 20;
  Call call;
  auto stream = OpenStream(&call);
  std::atomic<bool> stop{false};
  auto busy = std::async(std::launch::async, [&] {
    while (!stop) EXPECT_TRUE(MakeEmptyCall(stub_.get()).ok());
  });
  for (int i = 0; i < kPrograms; ++i) {
    EXPECT_EQ(RunTrue(), 0);
    EXPECT_TRUE(PingPong(stream.get()));
    EXPECT_TRUE(PingPong(stream.get(), 1 << 20));
  }
  stop = true;
  busy.get();
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_TRUE(stream->Finish().ok());
  ExpectPath(*channel());
}

TEST_P(ForkTest, ExecutedProgramInheritsNoDescriptor) {
  Call call;
  auto stream = OpenStream(&call);
  ASSERT_TRUE(PingPong(stream.get(), 1 << 20));
  EXPECT_EQ(Inheritable(), before_);
}

// Returns the output of forker over `path`.
std::string RunForker(Path path) {
  TestServiceImpl service;
  Stack stack(path);
  stack.Serve(&service);
  auto forker = Child::Start(
      {"tests/e2e/processes/forker", NameOf(path), stack.address()},
      {"GRPC_ENABLE_FORK_SUPPORT=1"});
  const std::string said = forker == nullptr ? "" : forker->ReadAll();
  stack.StopServing(std::chrono::milliseconds(0));
  return said;
}

// Returns the program's output for a path. Runs the program only once for each
// path, for all paths in parallel, because hung children take time.
const std::string& SaidOver(Path path) {
  using Answers = std::map<Path, std::shared_future<std::string>>;
  static const Answers* const answers = [] {
    auto* started = new Answers;
    for (Path each : {Path::kStock, Path::kShm, Path::kTcp}) {
      (*started)[each] = std::async(std::launch::async, RunForker, each);
    }
    return started;
  }();
  return answers->at(path).get();
}

class ForkWithoutExecTest : public testing::TestWithParam<Path> {};

TEST_P(ForkWithoutExecTest, ParentGoesOn) {
  ASSERT_THAT(SaidOver(Path::kStock), HasSubstr("parent 0 over http2"));
  ASSERT_THAT(SaidOver(Path::kStock), HasSubstr("stream goes on"));
  const std::string& said = SaidOver(GetParam());
  EXPECT_THAT(said, HasSubstr("parent 0 over " + FabricOf(GetParam())));
  EXPECT_THAT(said, HasSubstr("stream goes on"));
}

// Tests that a child does not use the parent's connection. Otherwise both
// processes would write into one ring, with the same sequence numbers.
TEST_P(ForkWithoutExecTest, ChildDoesNotUseTheParentsConnection) {
  const std::string& said = SaidOver(GetParam());
  EXPECT_THAT(said, HasSubstr("inherited "));
  EXPECT_THAT(said, Not(HasSubstr("inherited 0")));
  EXPECT_THAT(said, Not(ContainsRegex("parent [^0]")));
}

TEST_P(ForkWithoutExecTest, ChildMakesAChannelOfItsOwn) {
  if (!absl::StrContains(SaidOver(Path::kStock), "child 0 over http2")) {
    GTEST_SKIP()
        << "with stock gRPC 1.51 the child's first call hangs too, for "
           "its event engine has no threads after a fork";
  }
  EXPECT_THAT(SaidOver(GetParam()),
              HasSubstr("child 0 over " + FabricOf(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(Over, ForkTest, EachPath(), PathName());
INSTANTIATE_TEST_SUITE_P(Over, ForkWithoutExecTest, EachPenstockPath(),
                         PathName());

}  // namespace
}  // namespace penstock::e2e
