// Shared memory that is torn down on purpose while calls run.

#include <dirent.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/e2e/stack_test.h"
#include "transport/penstock.h"

namespace penstock::e2e {
namespace {

std::vector<int> OpenDescriptors() {
  std::vector<int> descriptors;
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    descriptors.push_back(std::atoi(entry->d_name));
  }
  closedir(folder);
  return descriptors;
}

// The sockets that shm is set up by are the only ones of packets here. Their
// end is for Penstock the end of the peer's shared memory.
bool IsShmSocket(int descriptor) {
  int type = 0;
  socklen_t size = sizeof type;
  sockaddr_storage peer;
  socklen_t peer_size = sizeof peer;
  return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
         type == SOCK_SEQPACKET &&
         getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer),
                     &peer_size) == 0;
}

int TearDownSharedMemory() {
  int count = 0;
  for (int descriptor : OpenDescriptors()) {
    if (!IsShmSocket(descriptor)) continue;
    shutdown(descriptor, SHUT_RDWR);
    ++count;
  }
  return count;
}

class PathLossTest : public ServiceTest {
 protected:
  std::string PathNow() {
    const auto reports = DescribePaths(*channel());
    return reports.size() == 1 ? reports[0].path : "none";
  }
  // Calls go on meanwhile: they are what notices a loss.
  bool CallUntilPathIs(const std::string& path) {
    const auto end = In(kPatience);
    while (PathNow() != path) {
      if (std::chrono::system_clock::now() > end) return false;
      EXPECT_TRUE(MakeEmptyCall(stub_.get()).ok());
    }
    return true;
  }
};

TEST_P(PathLossTest, CallsGoOnOverTcpAndThenOverShmAgain) {
  ASSERT_TRUE(CallUntilPathIs("shm"));
  for (int round = 0; round < 2; ++round) {
    ASSERT_GE(TearDownSharedMemory(), 1);
    ASSERT_TRUE(CallUntilPathIs("tcp"));
    ASSERT_TRUE(CallUntilPathIs("shm"));
  }
}

TEST_P(PathLossTest, StreamLosesAndRepeatsNothing) {
  Call call;
  auto stream = OpenStream(&call);
  for (int loss = 0; loss < 3; ++loss) {
    // Of every kind: in the ring, lent, and on the way when the loss comes.
    for (size_t bytes : {1, 1000, 8 * 1024, 100 * 1024, 1024 * 1024}) {
      ASSERT_TRUE(stream->Write(RequestOf(bytes, bytes)));
    }
    TearDownSharedMemory();
    for (size_t bytes : {1, 1000, 8 * 1024, 100 * 1024, 1024 * 1024}) {
      StreamingOutputCallResponse response;
      ASSERT_TRUE(stream->Read(&response));
      ASSERT_EQ(response.payload().body().size(), bytes);
    }
    ASSERT_TRUE(CallUntilPathIs("shm"));
  }
  stream->WritesDone();
  StreamingOutputCallResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_P(PathLossTest, ManyThreadsNoticeNothing) {
  ASSERT_TRUE(CallUntilPathIs("shm"));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int k = 0; k < 500; ++k) {
        ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
      }
    });
  }
  TearDownSharedMemory();
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(CallUntilPathIs("shm"));
}

INSTANTIATE_TEST_SUITE_P(Over, PathLossTest, testing::Values(Path::kShm),
                         PathName());

}  // namespace
}  // namespace penstock::e2e
