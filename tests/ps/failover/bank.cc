#include "tests/ps/failover/bank.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/client/define.h"
#include "ps/client/push_queue.h"
#include "ps/client/reader.h"
#include "ps/client/worker.h"
#include "ps/consistency/policy.h"
#include "ps/model/model.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

constexpr uint64_t kAccounts = 64;
constexpr uint64_t kFirstCounter = 1000;  // the id of rank 0's counter
constexpr char kTable[] = "accounts";
constexpr absl::Duration kTimeout = absl::Seconds(180);
// The longest wait of a test for transfers. A failover takes 3 s. After a cut
// of T seconds, TCP may wait for T more seconds.
constexpr absl::Duration kWait = absl::Seconds(60);

Model BankModel() {
  TableSpec table;
  table.name = kTable;
  SparseSpec rows;
  rows.dim = 1;
  table.rows = rows;
  table.staleness = ConsistencyPolicy::kUnlimited;
  table.optimizer.schedule.learning_rate = 1;
  Model model;
  model.tables = {table};
  return model;
}

const char* NameOf(PushVerdict verdict) {
  switch (verdict) {
    case PushVerdict::kCounted:
      return "counted";
    case PushVerdict::kDuplicate:
      return "duplicate";
    case PushVerdict::kLate:
      return "late";
  }
  return "unknown";
}

// Returns the gradients of a transfer. Their signs are reversed, because SGD
// subtracts gradients.
StepGradients Transfer(uint32_t rank, uint64_t step) {
  const uint64_t from = (step * 7 + rank) % kAccounts;
  const uint64_t to = (from + 1 + step % (kAccounts - 1)) % kAccounts;
  const float amount = static_cast<float>(1 + step % 9);
  StepGradients gradients;
  gradients.rows.push_back(
      {kTable,
       {from, to, kFirstCounter + rank},
       *tensor::Tensor::Of<float>({3, 1}, {amount, -amount, -1})});
  return gradients;
}

PullSpec RowsOf(std::vector<uint64_t> ids) {
  PullSpec spec;
  spec.all_dense = false;
  spec.rows.push_back({kTable, std::move(ids)});
  return spec;
}

}  // namespace

Bank::Bank(const TrainingConnection::Channels& servers,
           const std::vector<std::string>& addresses, uint32_t workers,
           Router::Connect connect)
    : servers_(servers), connect_(std::move(connect)), acknowledged_(workers) {
  Definition definition;
  definition.servers = servers_;
  definition.addresses = addresses;
  definition.model = BankModel();
  definition.timeout = kTimeout;
  const auto defined = Define(definition);
  if (!defined.ok()) {
    Fail(defined.status().ToString());
    return;
  }
  for (uint32_t rank = 0; rank < workers; ++rank) {
    workers_.emplace_back([this, rank] { Work(rank); });
  }
}

Bank::~Bank() { Close(); }

void Bank::Fail(const std::string& what) {
  absl::MutexLock lock(&mu_);
  if (failure_.empty()) failure_ = what;
}

void Bank::Note(absl::Duration pause) {
  absl::MutexLock lock(&mu_);
  longest_ = std::max(longest_, pause);
}

absl::Duration Bank::TakeLongestPause() {
  absl::MutexLock lock(&mu_);
  return std::exchange(longest_, absl::ZeroDuration());
}

void Bank::Work(uint32_t rank) {
  TrainingConnection::Options options;
  options.servers = servers_;
  options.connect = connect_;
  options.timeout = kTimeout;
  const auto connection = TrainingConnection::Open(options);
  if (!connection.ok()) return Fail(connection.status().ToString());
  Worker::Options worker_options;
  worker_options.connection = *connection;
  worker_options.rank = rank;
  worker_options.push_timeout = kTimeout;
  worker_options.pull_timeout = kTimeout;
  const auto worker = Worker::Join(std::move(worker_options));
  if (!worker.ok()) return Fail(worker.status().ToString());
  for (uint64_t step = (*worker)->clock(); !stop_; ++step) {
    const absl::Time begin = base::SteadyNow();
    const auto pushed = (*worker)->Push(step, Transfer(rank, step));
    if (!pushed.ok()) return Fail(pushed.status().ToString());
    Note(base::SteadyNow() - begin);
    if (!Take(rank, step, *pushed)) return;
    if (step % 8 != 0) continue;
    const absl::Time asked = base::SteadyNow();
    const auto pulled =
        (*worker)->Pull(step + 1, RowsOf({kFirstCounter + rank}));
    if (!pulled.ok()) return Fail(pulled.status().ToString());
    Note(base::SteadyNow() - asked);
    const float counter = (*pulled->Rows(0).flat<float>())[0];
    // Accepts a lower counter, because acknowledged pushes may be applied a
    // moment later.
    if (counter > static_cast<float>(acknowledged_[rank])) {
      return Fail(absl::StrCat("rank ", rank, " has ", acknowledged_[rank],
                               " pushes, and ", counter, " were applied"));
    }
  }
  (*worker)->Leave();
}

// Counts the push by its verdicts. A push is late if its worker's membership
// has ended and the other workers have continued. The worker then joins again
// at their step.
bool Bank::Take(uint32_t rank, uint64_t step, const Pushed& pushed) {
  const auto is_late = [](PushVerdict v) { return v == PushVerdict::kLate; };
  if (pushed.counted()) {
    ++acknowledged_[rank];
    ++transfers_;
    return true;
  }
  std::string verdicts;
  for (const PushVerdict each : pushed.verdicts) {
    absl::StrAppend(&verdicts, " ", NameOf(each));
  }
  const std::string what = absl::StrCat("push ", step, " of rank ", rank,
                                        " has the verdicts", verdicts);
  const bool is_refused =
      std::all_of(pushed.verdicts.begin(), pushed.verdicts.end(), is_late);
  if (!is_refused) {
    Fail(what);
    return false;
  }
  std::printf("%s: refused\n", what.c_str());
  return true;
}

std::string Bank::failure() const {
  absl::MutexLock lock(&mu_);
  return failure_;
}

void Bank::AwaitTransfers(uint64_t more) const {
  const uint64_t wanted = transfers_ + more;
  const absl::Time limit = base::SteadyNow() + kWait;
  while (transfers_ < wanted && failure().empty() &&
         base::SteadyNow() < limit) {
    absl::SleepFor(absl::Milliseconds(5));
  }
}

absl::StatusOr<uint64_t> Bank::Counted(uint32_t workers) const {
  TrainingConnection::Options options;
  options.servers = servers_;
  options.timeout = kTimeout;
  const auto connection = TrainingConnection::Open(options);
  if (!connection.ok()) return connection.status();
  std::vector<uint64_t> ids;
  for (uint32_t rank = 0; rank < workers; ++rank) {
    ids.push_back(kFirstCounter + rank);
  }
  const auto pulled = Reader(*connection).Pull(0, RowsOf(ids), kTimeout);
  if (!pulled.ok()) return pulled.status();
  uint64_t counted = 0;
  for (const float each : *pulled->Rows(0).flat<float>()) {
    counted += static_cast<uint64_t>(each);
  }
  return counted;
}

std::string Bank::Close() {
  stop_ = true;
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  {
    absl::MutexLock lock(&mu_);
    if (!failure_.empty()) return failure_;
  }
  TrainingConnection::Options options;
  options.servers = servers_;
  options.timeout = kTimeout;
  const auto connection = TrainingConnection::Open(options);
  if (!connection.ok()) return connection.status().ToString();
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < kAccounts; ++id) ids.push_back(id);
  for (uint64_t rank = 0; rank < acknowledged_.size(); ++rank) {
    ids.push_back(kFirstCounter + rank);
  }
  Reader reader(*connection);
  // Waits, because acknowledged pushes are applied soon.
  const absl::Time limit = base::SteadyNow() + absl::Seconds(5);
  while (true) {
    const auto pulled = reader.Pull(0, RowsOf(ids), kTimeout);
    if (!pulled.ok()) return pulled.status().ToString();
    const auto rows = pulled->Rows(0).flat<float>();
    if (!rows.ok()) return rows.status().ToString();
    float sum = 0;
    for (uint64_t id = 0; id < kAccounts; ++id) sum += (*rows)[id];
    std::string wrong;
    if (sum != 0) wrong = absl::StrCat("the sum of all accounts is ", sum);
    for (size_t rank = 0; rank < acknowledged_.size(); ++rank) {
      const float counted = (*rows)[kAccounts + rank];
      if (counted == static_cast<float>(acknowledged_[rank])) continue;
      wrong =
          absl::StrCat("rank ", rank, " has ", acknowledged_[rank],
                       " acknowledged pushes, and ", counted, " were applied");
    }
    if (wrong.empty() || base::SteadyNow() >= limit) return wrong;
    absl::SleepFor(absl::Milliseconds(50));
  }
}

}  // namespace penstock::ps
