// Tests the loss of paths: shared memory is torn down on purpose during calls.

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/shm_loss.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

// Returns the addresses of the control pages of both sides, which are both in
// this process (docs/protocol.md, "The shm fabric").
std::vector<uintptr_t> ControlPages() {
  std::vector<uintptr_t> pages;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (!absl::StrContains(line, "memfd:penstock-control")) continue;
    uintptr_t begin = 0, end = 0;
    char rights[5] = "";
    std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &begin, &end,
                rights);
    if (rights[1] == 'w') pages.push_back(begin);
  }
  return pages;
}

// Returns the addresses of control pages. Waits until the pages of lost paths
// are unmapped.
std::vector<uintptr_t> WaitForControlPages() {
  const auto end = In(kPatience);
  while (ControlPages().size() != 2 && std::chrono::system_clock::now() < end) {
    std::this_thread::yield();
  }
  return ControlPages();
}

void WriteNonsense(uintptr_t page, std::mt19937_64* random) {
  struct Word {
    uintptr_t offset;
    size_t bytes;
  };
  constexpr Word kHead = {64, 8}, kSenderWaits = {72, 4}, kTail = {128, 8},
                 kArmed = {192, 4}, kReleaseHead = {256, 8};
  const Word words[] = {kHead,        kTail,  kHead,       kTail,
                        kSenderWaits, kArmed, kReleaseHead};
  const Word word = words[(*random)() % 7];
  // Draws a value other than 0. A flag of 0 would only mean that the peer is
  // slow.
  uint64_t value = ((*random)() | 1) >> ((*random)() % 63);
  const int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
  const auto where = static_cast<off_t>(page + word.offset);
  if (word.bytes == 8 && (*random)() % 2 == 0) {  // near the correct value
    const uint64_t distance = 8 * (1 + value % 100);
    EXPECT_EQ(pread(memory, &value, 8, where), 8);
    value += (*random)() % 2 == 0 ? distance : -distance;
  }
  EXPECT_EQ(pwrite(memory, &value, word.bytes, where),
            static_cast<ssize_t>(word.bytes));
  close(memory);
}

class PathLossTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    used_ = channel();
  }
  void ExpectEcho(size_t bytes) {
    Call call;
    SimpleRequest request;
    *request.mutable_payload() = ZeroPayload(bytes);
    request.set_response_size(static_cast<int>(bytes));
    SimpleResponse response;
    const grpc::Status status = stub_->UnaryCall(&call, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.payload().body().size(), bytes);
  }
  // Ends the path while messages are lent. Keeps the path's sockets open. After
  // a shutdown, each side would assume that the other side is dead, and would
  // reuse the memory of lent messages. Read() would then return false, because
  // the message could not be parsed.
  static void LosePath() {
    if (kIsEventEngine) {
      TearDownSharedMemory();
    } else {
      BreakSharedMemory();
    }
  }
  std::string PathNow() {
    const auto reports = DescribePaths(*used_);
    return reports.size() == 1 ? reports[0].path : "none";
  }
  // Makes calls in the meantime, because calls detect a loss.
  bool CallUntilPathIs(const std::string& path) {
    const auto end = In(kPatience);
    while (PathNow() != path) {
      if (std::chrono::system_clock::now() > end) return false;
      EXPECT_TRUE(MakeEmptyCall(stub_.get()).ok());
    }
    return true;
  }

  std::shared_ptr<grpc::Channel> used_;  // the channel of stub_
};

TEST_P(PathLossTest, CallsGoOnOverTcpAndThenOverShmAgain) {
  if (kIsEventEngine) GTEST_SKIP() << "the next path comes within a call";
  ASSERT_TRUE(CallUntilPathIs("shm"));
  for (int round = 0; round < 2; ++round) {
    ASSERT_GE(TearDownSharedMemory(), 1);
    ASSERT_TRUE(CallUntilPathIs("tcp"));
    ASSERT_TRUE(CallUntilPathIs("shm"));
  }
}

TEST_P(PathLossTest, StreamLosesAndRepeatsNothing) {
  ASSERT_TRUE(CallUntilPathIs("shm"));
  Call call;
  auto stream = OpenStream(&call);
  for (int loss = 0; loss < 3; ++loss) {
    // Sends messages of every kind: in the ring, lent, and in flight when the
    // path is lost.
    for (size_t bytes : {1, 1000, 8 * 1024, 100 * 1024, 1024 * 1024}) {
      ASSERT_TRUE(stream->Write(RequestOf(bytes, bytes)));
    }
    LosePath();
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

TEST_P(PathLossTest, NonsenseInASharedPageCostsThePathAtMost) {
  constexpr int kRounds = 40;
  for (int seed = 0; seed < kRounds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937_64 random(seed);
    // Makes a new connection in each round, because a path that is lost
    // repeatedly is retried less and less often.
    stub_.reset();
    used_ = NewChannel();
    stub_ = TestService::NewStub(used_);
    ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
    ASSERT_TRUE(CallUntilPathIs("shm"));
    const std::vector<uintptr_t> pages = WaitForControlPages();
    ASSERT_EQ(pages.size(), 2u);
    std::vector<std::thread> callers;
    for (int i = 0; i < 2; ++i) {
      callers.emplace_back([this] {
        for (size_t k = 0; k < 150; ++k) ExpectEcho(k % 20 * 1500);
      });
    }
    WriteNonsense(pages[random() % 2], &random);
    for (std::thread& caller : callers) caller.join();
  }
}

INSTANTIATE_TEST_SUITE_P(Over, PathLossTest, testing::Values(Path::kShm),
                         PathName());

}  // namespace
}  // namespace penstock::e2e
