// Tests ps_server --sparse-memory as a process, with many tables that count
// pushes before an id gets a row.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "grpcpp/channel.h"
#include "ps/client/worker.h"
#include "tests/process/child.h"
#include "tests/process/usage.h"
#include "tests/ps/only_worker.h"

namespace penstock::ps {
namespace {

using process::Child;

constexpr size_t kMiB = size_t{1} << 20;

std::vector<uint64_t> Range(uint64_t begin, uint64_t end) {
  std::vector<uint64_t> ids(end - begin);
  std::iota(ids.begin(), ids.end(), begin);
  return ids;
}

// A server with tables whose ids get a row at their second push, and its only
// worker.
class CountingTables {
 public:
  CountingTables(size_t tables, absl::string_view memory) {
    server_ =
        Child::Start({"ps/ps_server", "--listen=127.0.0.1:0", "--quiet",
                      "--workers=1", absl::StrCat("--sparse-memory=", memory)});
    const auto port =
        server_ == nullptr ? absl::nullopt : server_->Find("port ");
    if (!port.has_value()) return;
    Model model;
    model.tables.resize(tables);
    for (size_t i = 0; i < tables; ++i) {
      TableSpec& table = model.tables[i];
      table.name = absl::StrCat("t", i);
      SparseSpec rows;
      rows.dim = 1;
      rows.min_count = 2;
      table.rows = rows;
      table.optimizer.schedule.learning_rate = 1;
    }
    Worker::Options options;
    // The time for which a push without room is repeated.
    options.push_timeout = absl::Seconds(20);
    auto joined = JoinAlone(*port, std::move(model), std::move(options));
    EXPECT_TRUE(joined.ok()) << joined.status();
    if (!joined.ok()) return;
    channel_ = joined->channel;
    worker_ = std::move(joined->worker);
  }

  bool is_ready() const { return worker_ != nullptr; }

  // Pushes ids to these tables, and returns once the server has applied them.
  absl::Status Push(const std::vector<size_t>& tables,
                    const std::vector<uint64_t>& ids) {
    const auto size = static_cast<int64_t>(ids.size());
    const auto ones =
        *tensor::Tensor::Of<float>({size, 1}, std::vector<float>(size, 1));
    StepGradients gradients;
    PullSpec spec;
    for (const size_t table : tables) {
      const std::string name = absl::StrCat("t", table);
      gradients.rows.push_back({name, ids, ones});
      spec.rows.push_back({name, {ids.front()}});
    }
    const uint64_t step = step_++;
    const absl::Status pushed = worker_->Push(step, gradients).status();
    return pushed.ok() ? worker_->Pull(step + 1, spec).status() : pushed;
  }

  v1::ServerReport Report() const {
    auto report = Describe(channel_, absl::Seconds(20));
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : v1::ServerReport();
  }
  // Returns the bytes of all tables, as the server counts them.
  uint64_t TableBytes() const {
    uint64_t bytes = 0;
    const v1::ServerReport report = Report();
    for (const v1::TableReport& table : report.tables()) {
      bytes += table.bytes();
    }
    return bytes;
  }
  uint64_t ResidentBytes() const {
    return process::ResidentBytes(server_->pid());
  }

 private:
  std::unique_ptr<Child> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<Worker> worker_;
  uint64_t step_ = 0;
};

// Returns the numbers of all tables.
std::vector<size_t> All(size_t tables) {
  std::vector<size_t> all(tables);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(SparseMemoryProcessTest, CountersOfManyTablesStayWithinTheLimit) {
  constexpr size_t kTables = 300;
  CountingTables tables(kTables, "256MiB");
  ASSERT_TRUE(tables.is_ready());
  const uint64_t before = tables.ResidentBytes();
  const absl::Status pushed = tables.Push(All(kTables), Range(0, 400));
  ASSERT_TRUE(pushed.ok()) << pushed;
  EXPECT_EQ(tables.Report().tables(0).rows(), 0u);
  EXPECT_LE(tables.TableBytes(), 256 * kMiB);
  EXPECT_LE(tables.ResidentBytes(), before + 256 * kMiB);
}

TEST(SparseMemoryProcessTest, CountersLeaveRoomForRows) {
  constexpr size_t kTables = 12;
  CountingTables tables(kTables, "16MiB");
  ASSERT_TRUE(tables.is_ready());
  // Pushes many ids once: far more than there is room to count.
  for (uint64_t id = 1000; id < 121'000; id += 10'000) {
    const absl::Status pushed =
        tables.Push(All(kTables), Range(id, id + 10'000));
    ASSERT_TRUE(pushed.ok()) << pushed;
  }
  for (size_t table = 0; table < kTables; ++table) {
    for (int i = 0; i < 2; ++i) {
      const absl::Status pushed = tables.Push({table}, Range(0, 100));
      ASSERT_TRUE(pushed.ok()) << pushed;
    }
  }
  const v1::ServerReport report = tables.Report();
  for (const v1::TableReport& table : report.tables()) {
    EXPECT_EQ(table.rows(), 100u) << table.name();
  }
  EXPECT_LE(tables.TableBytes(), 16 * kMiB);
}

}  // namespace
}  // namespace penstock::ps
