#include "bench/tensors/client.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bench/rpc/child_process.h"
#include "bench/rpc/statistics.h"
#include "bench/rpc/transports.h"
#include "bench/tensors/local.h"
#include "bench/tensors/server.h"
#include "bench/tensors/step.grpc.pb.h"
#include "bench/tensors/sum.h"
#include "bench/tensors/system.h"
#include "grpcpp/client_context.h"
#include "penstock/penstock.h"
#include "tensor_service/calls.h"
#include "tensor_service/codec.h"
#include "tensor_service/pool_allocator.h"

namespace penstock::bench {
namespace {

// So many steps are not counted: memory is fetched and sizes are found.
constexpr int kFirstSteps = 3;
// So many are, however long they take.
constexpr size_t kLeastSteps = 5;
constexpr absl::Duration kCallTimeout = absl::Seconds(30);
// A connection may begin on a worse path, and tell of it.
constexpr int64_t kPathTimeoutNs = 2000000000;
constexpr absl::string_view kUnavailablePrefix = "unavailable: ";
constexpr absl::string_view kErrorPrefix = "error: ";

// Does a contender's steps. Each returns the sum of the bytes that were read.
class Stepper {
 public:
  virtual ~Stepper() = default;
  virtual absl::StatusOr<uint64_t> DoStep(int64_t begin_ns, Step* step) = 0;
  // Returns UNAVAILABLE unless the contender's transport is what carries it.
  virtual absl::Status CheckPath() { return absl::OkStatus(); }
};

class LocalStepper final : public Stepper {
 public:
  LocalStepper(const tensor::Bundle* variables, absl::optional<Copier> copier)
      : variables_(variables), copier_(std::move(copier)) {}

  absl::StatusOr<uint64_t> DoStep(int64_t begin_ns, Step* step) override {
    return copier_.has_value() ? copier_->Run(*variables_, begin_ns, step)
                               : ReadInPlace(*variables_, begin_ns, step);
  }

 private:
  const tensor::Bundle* const variables_;
  absl::optional<Copier> copier_;
};

class RpcStepper final : public Stepper {
 public:
  RpcStepper(const Contender& contender, const tensor::Bundle* variables,
             StepServer server)
      : contender_(contender),
        variables_(variables),
        server_(std::move(server)),
        channel_(MakeChannel(contender.transport, server_.address, "")),
        stub_(v1::Step::NewStub(channel_)) {}

  absl::StatusOr<uint64_t> DoStep(int64_t begin_ns, Step* step) override {
    v1::StepReply reply;
    const int64_t faults = PageFaults();
    const absl::Status status = contender_.way == Way::kGenerated
                                    ? CallGenerated(&reply)
                                    : CallCodec(&reply);
    if (!status.ok()) return status;
    step->call_us = (MonotonicNs() - begin_ns) / 1e3;
    step->handed_us = (reply.handed_ns() - begin_ns) / 1e3;
    step->read_us = (reply.read_ns() - begin_ns) / 1e3;
    step->page_faults = PageFaults() - faults + reply.page_faults() - faults_;
    faults_ = reply.page_faults();
    return reply.sum();
  }

  absl::Status CheckPath() override {
    return CheckPaths(contender_.transport, DescribePaths(*channel_));
  }

 private:
  // The message is kept, and so are its strings' memory, as a careful program
  // would. The variables are the program's own, so they are copied into it.
  absl::Status CallGenerated(v1::StepReply* reply) {
    while (message_.tensors_size() <
           static_cast<int>(variables_->tensors.size())) {
      message_.add_tensors();
    }
    for (size_t i = 0; i < variables_->tensors.size(); ++i) {
      const tensor::NamedTensor& named = variables_->tensors[i];
      tensor::v1::NamedTensor* const entry = message_.mutable_tensors(i);
      entry->set_name(named.name);
      tensor::v1::Tensor* const tensor = entry->mutable_tensor();
      tensor->set_dtype(tensor::v1::DTYPE_F32);
      tensor->mutable_shape()->Assign(named.tensor.shape().begin(),
                                      named.tensor.shape().end());
      tensor->set_data(named.tensor.bytes().data(), named.tensor.byte_size());
    }
    grpc::ClientContext context;
    context.set_deadline(tensor::DeadlineAfter(kCallTimeout));
    const grpc::Status status = stub_->Generated(&context, message_, reply);
    if (status.ok()) return absl::OkStatus();
    return absl::UnavailableError(status.error_message());
  }

  absl::Status CallCodec(v1::StepReply* reply) {
    const auto request = tensor::Encode(*variables_);
    if (!request.ok()) return request.status();
    tensor::CallQueue queue;
    queue.Start(channel_, "/penstock.bench.v1.Step/Codec", *request,
                kCallTimeout);
    const tensor::CallQueue::Result result = std::move(queue.Wait().front());
    if (!result.status.ok()) return result.status;
    return tensor::ToProto(result.reply, reply);
  }

  const Contender contender_;
  const tensor::Bundle* const variables_;
  StepServer server_;
  // After the server, so that it is closed before.
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Step::Stub> stub_;
  tensor::v1::Bundle message_;
  int64_t faults_ = 0;  // the server's, after the last step
};

absl::StatusOr<std::unique_ptr<Stepper>> MakeStepper(
    const Contender& contender, const tensor::Bundle* variables,
    const ClientOptions& options) {
  if (contender.way == Way::kRead) {
    return std::make_unique<LocalStepper>(variables, absl::nullopt);
  }
  if (contender.way == Way::kCopy) {
    absl::StatusOr<Copier> copier = Copier::Make(*variables);
    if (!copier.ok()) return copier.status();
    return std::make_unique<LocalStepper>(variables, *std::move(copier));
  }
  absl::StatusOr<StepServer> server = StartServer(contender, options.host);
  if (!server.ok()) return server.status();
  return std::make_unique<RpcStepper>(contender, variables, *std::move(server));
}

// Does steps until the path is the contender's.
absl::Status AwaitPath(Stepper* stepper) {
  const int64_t begin_ns = MonotonicNs();
  for (;;) {
    Step step;
    const auto sum = stepper->DoStep(MonotonicNs(), &step);
    if (!sum.ok()) return absl::UnavailableError(sum.status().message());
    absl::Status status = stepper->CheckPath();
    if (status.ok() || MonotonicNs() - begin_ns > kPathTimeoutNs) return status;
  }
}

double MedianOf(const std::vector<Step>& steps, double Step::*figure) {
  std::vector<double> figures;
  figures.reserve(steps.size());
  for (const Step& step : steps) figures.push_back(step.*figure);
  return Median(std::move(figures));
}

bool HasEnough(const ClientOptions& options, int64_t elapsed_ns, size_t steps) {
  if (options.steps > 0) return steps >= static_cast<size_t>(options.steps);
  return elapsed_ns > absl::ToInt64Nanoseconds(options.measure) &&
         steps >= kLeastSteps;
}

absl::StatusOr<Step> Measure(Stepper* stepper, uint64_t expected,
                             const ClientOptions& options) {
  std::vector<Step> steps;
  const int64_t first_ns = MonotonicNs();
  for (int i = 0;; ++i) {
    const int64_t begin_ns = MonotonicNs();
    if (HasEnough(options, begin_ns - first_ns, steps.size())) break;
    Step step;
    const absl::StatusOr<uint64_t> sum = stepper->DoStep(begin_ns, &step);
    if (!sum.ok()) return sum.status();
    if (*sum != expected) return absl::DataLossError("wrong bytes were read");
    if (i >= kFirstSteps) steps.push_back(step);
  }
  const absl::Status path = stepper->CheckPath();
  if (!path.ok()) return path;
  return Step{MedianOf(steps, &Step::handed_us),
              MedianOf(steps, &Step::read_us), MedianOf(steps, &Step::call_us),
              MedianOf(steps, &Step::page_faults)};
}

absl::StatusOr<Step> RunRound(const Contender& contender, const Model& model,
                              const ClientOptions& options) {
  tensor::Allocator* const allocator = contender.memory == Memory::kPool
                                           ? tensor::PoolAllocator<Allocator>()
                                           : tensor::HeapAllocator();
  const auto variables = MakeVariables(model, allocator);
  if (!variables.ok()) return variables.status();
  auto stepper = MakeStepper(contender, &*variables, options);
  if (!stepper.ok()) return stepper.status();
  const absl::Status path = AwaitPath(stepper->get());
  if (!path.ok()) return path;
  Step unused;
  return Measure(stepper->get(), ReadInPlace(*variables, 0, &unused), options);
}

}  // namespace

absl::StatusOr<Step> MeasureInChild(const Contender& contender,
                                    const Model& model,
                                    const ClientOptions& options) {
  auto process = ChildProcess::Start(
      {absl::StrCat(kClientFlag, "=", contender.name),
       absl::StrCat(kModelFlag, "=", model.name),
       absl::StrCat(kHostFlag, "=", options.host),
       absl::StrCat(kSecondsFlag, "=", absl::ToDoubleSeconds(options.measure)),
       absl::StrCat(kStepsFlag, "=", options.steps)});
  if (!process.ok()) return process.status();
  // Each call of the child's has a time limit.
  const absl::StatusOr<std::string> line = (*process)->ReadLine(-1);
  if (!line.ok()) return line.status();
  absl::string_view text = *line;
  if (absl::ConsumePrefix(&text, kUnavailablePrefix)) {
    return absl::UnavailableError(text);
  }
  if (absl::ConsumePrefix(&text, kErrorPrefix)) {
    return absl::InternalError(absl::StrCat(contender.name, ": ", text));
  }
  return FromLine(text);
}

void RunClient(const Contender& contender, const Model& model,
               const ClientOptions& options) {
  BecomeChild();
  const absl::StatusOr<Step> step = RunRound(contender, model, options);
  if (step.ok()) {
    SendLine(ToLine(*step));
    LeaveChild(0);
  }
  SendLine(absl::StrCat(
      absl::IsUnavailable(step.status()) ? kUnavailablePrefix : kErrorPrefix,
      step.status().message()));
  LeaveChild(1);
}

}  // namespace penstock::bench
