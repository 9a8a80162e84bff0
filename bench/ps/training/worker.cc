#include "ps/client/worker.h"

#include <time.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/ps/training/read.h"
#include "bench/ps/training/roles.h"
#include "bench/ps/training/rounds.h"
#include "bench/rpc/report/statistics.h"
#include "bench/rpc/setup/child_process.h"
#include "bench/rpc/setup/transports.h"
#include "penstock/penstock.h"
#include "ps/client/define.h"
#include "ps/optim/workers.h"
#include "tensor_service/pool_allocator.h"

namespace penstock::bench {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);
constexpr size_t kLeastSteps = 3;

// One worker of one server. Measures the steps of a workload.
class Training {
 public:
  static absl::StatusOr<std::unique_ptr<Training>> Start(
      Transport transport, const RoleOptions& options);

  absl::StatusOr<Figures> Round();

 private:
  Training(Transport transport, const RoleOptions& options, Workload workload)
      : transport_(transport),
        seconds_(options.seconds),
        workload_(std::move(workload)),
        channel_(MakeChannel(transport, options.address, "")) {
    clock_getcpuclockid(options.server, &server_clock_);
  }

  absl::Status Begin(const std::string& address);
  absl::Status Fill();
  absl::StatusOr<ps::Pulled> Pull() {
    return worker_->Pull(step_, workload_.PullOf(step_));
  }
  // Pushes gradients, and ends the step.
  absl::Status Push(const ps::StepGradients& gradients);
  absl::Status PushThis() { return Push(workload_.PushOf(step_)); }
  absl::Status AwaitApplied();
  void Read(const ps::Pulled& pulled) const;

  absl::Status MeasureCalls(Figures* figures);
  absl::Status MeasureSteps(Figures* figures);
  absl::Status CheckValues();
  double CpuSeconds() const {
    return SecondsOf(CLOCK_PROCESS_CPUTIME_ID) + SecondsOf(server_clock_);
  }

  const Transport transport_;
  const double seconds_;
  const Workload workload_;
  const ps::optim::Workers threads_;
  const std::shared_ptr<grpc::Channel> channel_;
  clockid_t server_clock_;
  std::unique_ptr<ps::Worker> worker_;
  uint64_t step_ = 0;
};

absl::StatusOr<std::unique_ptr<Training>> Training::Start(
    Transport transport, const RoleOptions& options) {
  auto workload = Workload::Make(options.workload, options.sizes);
  if (!workload.ok()) return workload.status();
  std::unique_ptr<Training> training(
      new Training(transport, options, *std::move(workload)));
  absl::Status status = training->Begin(options.address);
  if (status.ok()) status = training->Fill();
  // The first steps are not measured, because they allocate memory and set up
  // the path.
  Figures unused;
  if (status.ok()) status = training->MeasureSteps(&unused);
  if (!status.ok()) return status;
  return training;
}

absl::Status Training::Begin(const std::string& address) {
  auto defined =
      ps::Define({{channel_}, {address}, workload_.model(), kTimeout});
  if (!defined.ok()) return defined.status();
  ps::Worker::Options options;
  options.connection = defined->connection;
  options.pull_timeout = options.push_timeout = kTimeout;
  auto worker = ps::Worker::Join(std::move(options));
  if (!worker.ok()) return worker.status();
  worker_ = *std::move(worker);
  step_ = worker_->clock();
  if (!defined->wants_values) return absl::OkStatus();
  auto values = workload_.FirstValues();
  if (!values.ok()) return values.status();
  return worker_->Initialize(*values);
}

absl::Status Training::Fill() {
  absl::Status status;
  for (const ps::StepGradients& some : workload_.fill()) {
    if (status.ok()) status = Push(some);
  }
  return status;
}

absl::Status Training::Push(const ps::StepGradients& gradients) {
  const auto pushed = worker_->Push(step_, gradients);
  if (!pushed.ok()) return pushed.status();
  if (!pushed->counted()) return absl::InternalError("a push did not count");
  ++step_;
  return absl::OkStatus();
}

absl::Status Training::AwaitApplied() {
  ps::PullSpec nothing;
  nothing.all_dense = false;
  return worker_->Pull(step_, nothing).status();
}

void Training::Read(const ps::Pulled& pulled) const {
  if (workload_.is_sparse()) {
    ReadAll(pulled.Rows(0).bytes(), threads_);
    return;
  }
  for (const tensor::NamedTensor& named : pulled.AllDense().tensors) {
    ReadAll(named.tensor.bytes(), threads_);
  }
}

// Measures pulls and pushes. Requires that the values are ready before the
// pull, and that no call is in progress.
absl::Status Training::MeasureCalls(Figures* figures) {
  std::vector<double> pulls;
  std::vector<double> reads;
  std::vector<double> pushes;
  const double first = Now();
  while (Now() - first < seconds_ / 2 || pulls.size() < kLeastSteps) {
    absl::Status applied = AwaitApplied();
    if (!applied.ok()) return applied;
    const double begin = Now();
    const auto pulled = Pull();
    if (!pulled.ok()) return pulled.status();
    const double pulled_at = Now();
    Read(*pulled);
    const double read_at = Now();
    absl::Status pushed = PushThis();
    if (!pushed.ok()) return pushed;
    pushes.push_back(Now() - read_at);
    pulls.push_back(pulled_at - begin);
    reads.push_back(read_at - begin);
  }
  figures->pull = Median(std::move(pulls));
  figures->read = Median(std::move(reads));
  figures->push = Median(std::move(pushes));
  return absl::OkStatus();
}

absl::Status Training::MeasureSteps(Figures* figures) {
  std::vector<double> steps;
  auto pulled = Pull();
  const double cpu_begin = CpuSeconds();
  const double first = Now();
  double begin = first;
  while (begin - first < seconds_ / 2 || steps.size() < kLeastSteps) {
    if (!pulled.ok()) return pulled.status();
    Read(*pulled);
    absl::Status pushed = PushThis();
    if (!pushed.ok()) return pushed;
    pulled = Pull();
    const double end = Now();
    steps.push_back(end - begin);
    begin = end;
  }
  figures->cpu = (CpuSeconds() - cpu_begin) / static_cast<double>(steps.size());
  figures->step = Median(std::move(steps));
  return pulled.status();
}

// Checks that a dense value shows the right number of steps.
absl::Status Training::CheckValues() {
  if (workload_.is_sparse()) return absl::OkStatus();
  const auto pulled = Pull();
  if (!pulled.ok()) return pulled.status();
  for (const tensor::NamedTensor& named : pulled->AllDense().tensors) {
    auto aligned = named.tensor.Aligned();
    if (!aligned.ok()) return aligned.status();
    auto values = aligned->flat<float>();
    if (!values.ok()) return values.status();
    const float expected = -kRate * static_cast<float>(step_);
    if (values->front() == expected && values->back() == expected) continue;
    return absl::DataLossError(absl::StrCat(named.name, " is ", values->front(),
                                            " after step ", step_,
                                            ", expected ", expected));
  }
  return absl::OkStatus();
}

absl::StatusOr<Figures> Training::Round() {
  Figures figures;
  absl::Status status = MeasureCalls(&figures);
  if (status.ok()) status = MeasureSteps(&figures);
  if (status.ok()) status = CheckValues();
  if (status.ok()) status = CheckPaths(transport_, DescribePaths(*channel_));
  if (!status.ok()) return status;
  return figures;
}

}  // namespace

void RunWorker(Transport transport, const RoleOptions& options) {
  BecomeChild();
  if (PenstockOptions(transport, Side::kClient, "").has_value()) {
    tensor::SetDefaultAllocator(tensor::PoolAllocator<Allocator>());
  }
  const auto training = Training::Start(transport, options);
  if (!training.ok()) GiveUp(training.status());
  ServeRounds([&] { return (*training)->Round(); });
}

}  // namespace penstock::bench
