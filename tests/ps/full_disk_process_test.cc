// Tests ps_server --spill on a disk that fills up again and again. The server
// must survive, keep each row that it has accepted, and accept more once there
// is room.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ps/client/worker.h"
#include "ps/sparse/options.h"
#include "tests/process/child.h"
#include "tests/ps/only_worker.h"

namespace penstock::ps {
namespace {

using process::Child;
using testing::HasSubstr;

constexpr char kServer[] = "ps/ps_server";
constexpr uint32_t kDim = 256;  // a row of 1 KiB
constexpr uint64_t kRowsAPush = 2000;
constexpr char kDisk[] = "size=96m";
constexpr char kLargerDisk[] = "size=192m";

// Returns a model that spills: memory has room for only a few rows.
Model SpillingModel() {
  TableSpec table;
  table.name = "words";
  table.optimizer.rule = optim::Rule::kSgd;
  table.optimizer.schedule.learning_rate = 1;
  SparseSpec rows;
  rows.dim = kDim;
  rows.above_budget = sparse::AboveBudget::kSpill;
  table.rows = rows;
  rows.budget_bytes = sparse::LeastBudget(OptionsOf(table)) + (size_t{4} << 20);
  table.rows = rows;
  return {{table}};
}

// A file that fills a disk, as other users of a shared disk do.
class Ballast {
 public:
  explicit Ballast(const std::string& folder) : path_(folder + "/ballast") {
    const int file = open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    const std::string piece(1 << 16, 'b');
    for (size_t size = piece.size(); size > 0;) {
      if (write(file, piece.data(), size) < 0) size /= 2;
    }
    close(file);
  }
  ~Ballast() { unlink(path_.c_str()); }

 private:
  const std::string path_;
};

class FullDiskProcessTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    may_mount_ = unshare(CLONE_NEWNS) == 0 &&
                 mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  }

  void SetUp() override {
    folder_ = testing::TempDir() + "/full-XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    if (!may_mount_ || !Mount(kDisk)) {
      std::cout << "SKIPPED: no mount namespace here: no full disk was tried\n";
      GTEST_SKIP() << "unshare or mount is not permitted";
    }
    umount2(folder_.c_str(), MNT_DETACH);
  }
  void TearDown() override { rmdir(folder_.c_str()); }

  bool Mount(const char* size, unsigned long flags = 0) {
    return mount("tmpfs", folder_.c_str(), "tmpfs", flags, size) == 0;
  }

  // Starts a server on an empty disk, and becomes its only worker.
  void Begin() {
    ASSERT_TRUE(Mount(kDisk));
    server_ = Child::Start({kServer, "--listen=127.0.0.1:0", "--workers=1",
                            "--quiet", absl::StrCat("--spill=", folder_)});
    ASSERT_NE(server_, nullptr);
    const auto port = server_->Find("port ");
    ASSERT_TRUE(port.has_value());
    Worker::Options options;
    options.push_timeout = absl::Milliseconds(500);
    options.pull_timeout = absl::Minutes(1);
    auto joined = JoinAlone(*port, SpillingModel(), std::move(options));
    ASSERT_TRUE(joined.ok()) << joined.status();
    worker_ = std::move(joined->worker);
    step_ = worker_->clock();
    rows_ = 0;
  }

  void End() {
    ASSERT_TRUE(server_->IsAlive()) << server_->Fate();
    worker_.reset();
    kill(server_->pid(), SIGTERM);
    EXPECT_EQ(server_->Finish(), 0) << server_->Fate();
    server_.reset();
    ASSERT_EQ(umount2(folder_.c_str(), MNT_DETACH), 0);
  }

  // Pushes gradients for ids that have no rows yet.
  absl::Status Push() {
    StepGradients gradients;
    gradients.rows.push_back(
        {"words", Ids(rows_),
         *tensor::Tensor::Of<float>({kRowsAPush, kDim},
                                    std::vector<float>(kRowsAPush * kDim, 1))});
    const absl::Status pushed = worker_->Push(step_, gradients).status();
    if (pushed.ok()) {
      ++step_;
      rows_ += kRowsAPush;
    }
    return pushed;
  }
  static std::vector<uint64_t> Ids(uint64_t begin) {
    std::vector<uint64_t> ids(kRowsAPush);
    std::iota(ids.begin(), ids.end(), begin);
    return ids;
  }

  // Pushes until the disk is full. After `pushes` pushes, another file fills
  // the disk.
  void Fill(uint64_t pushes) {
    std::unique_ptr<Ballast> others;
    absl::Status refused;
    // Repeats a push after an expired deadline, which is no refusal and happens
    // on a slow machine.
    while (refused.ok() || absl::IsDeadlineExceeded(refused)) {
      if (others == nullptr && rows_ >= pushes * kRowsAPush) {
        others = std::make_unique<Ballast>(folder_);
      }
      refused = Push();
      ASSERT_LT(rows_, 200'000u) << "the disk has no room for that";
    }
    ASSERT_TRUE(absl::IsResourceExhausted(refused)) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("no room"));
    ASSERT_GT(rows_, 0u);
    if (others == nullptr) others = std::make_unique<Ballast>(folder_);
    ASSERT_FALSE(Push().ok());
    ASSERT_TRUE(server_->IsAlive()) << server_->Fate();
  }

  // Makes room on the disk again. Then tests pull, because a pull after a
  // failed push would wait for room.
  void Recover() {
    ASSERT_TRUE(Mount(kLargerDisk, MS_REMOUNT));
    const absl::Time end = absl::Now() + absl::Seconds(60);
    absl::Status pushed = Push();
    while (!pushed.ok() && absl::Now() < end) pushed = Push();
    ASSERT_TRUE(pushed.ok()) << pushed;
    ASSERT_TRUE(Push().ok());
    ExpectRows();
  }

  void ExpectRows() {
    for (uint64_t begin = 0; begin < rows_; begin += kRowsAPush) {
      PullSpec spec;
      spec.rows = {{"words", Ids(begin)}};
      const auto pulled = worker_->Pull(step_, spec);
      ASSERT_TRUE(pulled.ok()) << pulled.status() << server_->Fate();
      const auto values = *pulled->Rows(0).flat<float>();
      for (uint64_t i = 0; i < kRowsAPush * kDim; ++i) {
        ASSERT_EQ(values[i], -1) << begin + i / kDim;
      }
    }
  }

  static bool may_mount_;
  std::string folder_;
  std::unique_ptr<Child> server_;
  std::unique_ptr<Worker> worker_;
  uint64_t step_ = 0;
  uint64_t rows_ = 0;
};

bool FullDiskProcessTest::may_mount_ = false;

// Tests that the server survives each of several full disks. FULL_DISK_FILLS
// sets their number.
TEST_F(FullDiskProcessTest, TheServerSurvivesEachFill) {
  int fills = 2;
  if (const char* value = getenv("FULL_DISK_FILLS")) {
    ASSERT_TRUE(absl::SimpleAtoi(value, &fills));
  }
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < fills && !HasFailure(); ++i) {
    Begin();
    if (HasFailure()) return;
    const uint64_t pushes = random() % 40 + 1;
    Fill(pushes);
    if (!HasFailure()) Recover();
    std::cout << "fill " << i << ": " << rows_ << " rows, others after "
              << pushes << " pushes" << std::endl;
    if (!HasFailure()) End();
  }
}

}  // namespace
}  // namespace penstock::ps
