#include "bench/tensors/client.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bench/rpc/message/devices.h"
#include "bench/rpc/report/statistics.h"
#include "bench/rpc/setup/child_process.h"
#include "bench/rpc/setup/transports.h"
#include "bench/tensors/device_steps.h"
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

// The number of steps before the measurement, in which memory is allocated and
// sizes settle.
constexpr int kFirstSteps = 3;
// The minimal number of measured steps, even if the time is over.
constexpr size_t kLeastSteps = 5;
constexpr absl::Duration kCallTimeout = absl::Seconds(30);
// Limits the nanoseconds until the contender's path is in use. A connection may
// start on a worse path.
constexpr int64_t kPathTimeoutNs = 2000000000;
constexpr absl::string_view kUnavailablePrefix = "unavailable: ";
constexpr absl::string_view kErrorPrefix = "error: ";

// The sum of all bytes that a step has read. Empty for bytes on a device,
// unless they are read back.
using Sum = absl::optional<uint64_t>;

// Makes and times the steps of a contender.
class Stepper {
 public:
  virtual ~Stepper() = default;
  // Makes one step, and stores its times. With `reads_back`, always returns a
  // sum.
  virtual absl::StatusOr<Sum> DoStep(int64_t begin_ns, bool reads_back,
                                     Step* step) = 0;
  // Returns OK if the contender's transport carries the calls, otherwise
  // UNAVAILABLE.
  virtual absl::Status CheckPath() { return absl::OkStatus(); }
};

class LocalStepper final : public Stepper {
 public:
  // Makes a stepper that reads the variables in place.
  explicit LocalStepper(const tensor::Bundle* variables)
      : variables_(variables) {}
  LocalStepper(const tensor::Bundle* variables, Copier copier)
      : variables_(variables), copier_(std::move(copier)) {}

  absl::StatusOr<Sum> DoStep(int64_t begin_ns, bool reads_back,
                             Step* step) override {
    return copier_.has_value() ? copier_->Run(*variables_, begin_ns, step)
                               : ReadInPlace(*variables_, begin_ns, step);
  }

 private:
  const tensor::Bundle* const variables_;
  absl::optional<Copier> copier_;
};

class DeviceStepper final : public Stepper {
 public:
  DeviceStepper(const tensor::Bundle* variables, DeviceCopier copier)
      : variables_(variables), copier_(std::move(copier)) {}

  absl::StatusOr<Sum> DoStep(int64_t begin_ns, bool reads_back,
                             Step* step) override {
    return copier_.Run(*variables_, begin_ns, step);
  }

 private:
  const tensor::Bundle* const variables_;
  DeviceCopier copier_;
};

// Returns true if the handler should get the variables in device memory.
bool StaysOnDevice(const Contender& contender,
                   const tensor::Bundle& variables) {
  return contender.transport == Transport::kShm &&
         contender.memory == Memory::kDevice &&
         contender.to == Memory::kDevice && !contender.staged &&
         std::any_of(variables.tensors.begin(), variables.tensors.end(),
                     [](const tensor::NamedTensor& named) {
                       return named.tensor.byte_size() >= tensor::kLendAtLeast;
                     });
}

class RpcStepper final : public Stepper {
 public:
  RpcStepper(const Contender& contender, const tensor::Bundle* variables,
             StepServer server)
      : contender_(contender),
        variables_(variables),
        server_(std::move(server)),
        channel_(MakeChannel(contender.transport, server_.address, "")),
        stub_(v1::Step::NewStub(channel_)) {}

  absl::StatusOr<Sum> DoStep(int64_t begin_ns, bool reads_back,
                             Step* step) override {
    v1::StepReply reply;
    const int64_t faults = PageFaults();
    const absl::Status status = contender_.way == Way::kGenerated
                                    ? CallGenerated(&reply)
                                    : CallCodec(reads_back, &reply);
    if (!status.ok()) return status;
    step->call_us = (MonotonicNs() - begin_ns) / 1e3;
    step->handed_us = (reply.handed_ns() - begin_ns) / 1e3;
    step->read_us = (reply.read_ns() - begin_ns) / 1e3;
    step->page_faults = PageFaults() - faults + reply.page_faults() - faults_;
    faults_ = reply.page_faults();
    on_device_bytes_ = reply.on_device_bytes();
    return reply.unread() ? Sum() : Sum(reply.sum());
  }

  absl::Status CheckPath() override {
    if (StaysOnDevice(contender_, *variables_) && on_device_bytes_ == 0) {
      return absl::UnavailableError(
          "the device's memory came by way of the host, as one process cannot "
          "open the other's there");
    }
    return CheckPaths(contender_.transport, DescribePaths(*channel_));
  }

 private:
  // Makes the call with protobuf's generated code. Reuses the message and its
  // strings' memory, like a careful program. Copies the variables into the
  // message, because they belong to the program.
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

  absl::Status CallCodec(bool reads_back, v1::StepReply* reply) {
    const auto request = EncodeCodec(reads_back);
    if (!request.ok()) return request.status();
    tensor::CallQueue queue;
    queue.Start(channel_, kCodecPath, *request, kCallTimeout);
    const tensor::CallQueue::Result result = std::move(queue.Wait().front());
    if (!result.status.ok()) return result.status;
    return tensor::ToProto(result.reply, reply);
  }

  absl::StatusOr<grpc::ByteBuffer> EncodeCodec(bool reads_back) {
    const absl::string_view header =
        reads_back && contender_.to == Memory::kDevice ? kReadBack : "";
    if (!contender_.staged) return tensor::Encode(*variables_, header);
    const absl::StatusOr<tensor::Bundle> here = variables_->ToHost();
    if (!here.ok()) return here.status();
    return tensor::Encode(*here, header);
  }

  const Contender contender_;
  const tensor::Bundle* const variables_;
  StepServer server_;
  // The client's channel. Declared after the server, so that the channel is
  // destroyed first.
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Step::Stub> stub_;
  tensor::v1::Bundle message_;
  // The server's page faults until the end of the last step.
  int64_t faults_ = 0;
  // The bytes of the last step that were received on a device.
  int64_t on_device_bytes_ = 0;
};

absl::StatusOr<std::unique_ptr<Stepper>> MakeStepper(
    const Contender& contender, const tensor::Bundle* variables,
    const ClientOptions& options) {
  if (contender.way == Way::kRead) {
    return std::make_unique<LocalStepper>(variables);
  }
  if (contender.way == Way::kCopy && UsesDevice(contender)) {
    absl::StatusOr<DeviceCopier> copier = DeviceCopier::Make(
        *variables, contender.to == Memory::kDevice ? kGpu : tensor::Device());
    if (!copier.ok()) return copier.status();
    return std::make_unique<DeviceStepper>(variables, *std::move(copier));
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

// Makes steps until the contender's path is in use.
absl::Status AwaitPath(Stepper* stepper) {
  const int64_t begin_ns = MonotonicNs();
  for (;;) {
    Step step;
    const auto sum = stepper->DoStep(MonotonicNs(), /*reads_back=*/true, &step);
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

absl::Status CheckSum(const absl::StatusOr<Sum>& sum, uint64_t expected) {
  if (!sum.ok()) return sum.status();
  if (!sum->has_value() || **sum == expected) return absl::OkStatus();
  return absl::DataLossError("wrong bytes were read");
}

absl::StatusOr<Step> Measure(Stepper* stepper, uint64_t expected,
                             const ClientOptions& options) {
  std::vector<Step> steps;
  const int64_t first_ns = MonotonicNs();
  for (int i = 0;; ++i) {
    const int64_t begin_ns = MonotonicNs();
    if (HasEnough(options, begin_ns - first_ns, steps.size())) break;
    Step step;
    const absl::StatusOr<Sum> sum =
        stepper->DoStep(begin_ns, i < kFirstSteps, &step);
    absl::Status status = CheckSum(sum, expected);
    if (!status.ok()) return status;
    if (i >= kFirstSteps) steps.push_back(step);
  }
  Step unused;
  absl::Status last = CheckSum(
      stepper->DoStep(MonotonicNs(), /*reads_back=*/true, &unused), expected);
  if (!last.ok()) return last;
  const absl::Status path = stepper->CheckPath();
  if (!path.ok()) return path;
  return Step{MedianOf(steps, &Step::handed_us),
              MedianOf(steps, &Step::read_us), MedianOf(steps, &Step::call_us),
              MedianOf(steps, &Step::page_faults)};
}

// Makes the variables in the contender's memory.
absl::StatusOr<tensor::Bundle> PlaceVariables(const Contender& contender,
                                              const Model& model) {
  if (contender.memory == Memory::kHeap) {
    return MakeVariables(model, tensor::HeapAllocator());
  }
  auto in_pool = MakeVariables(model, tensor::PoolAllocator<Allocator>());
  if (!in_pool.ok() || contender.memory == Memory::kPool) return in_pool;
  return OnDevice(*in_pool, kGpu);
}

absl::StatusOr<Step> RunRound(const Contender& contender, const Model& model,
                              const ClientOptions& options) {
  if (UsesDevice(contender)) {
    const absl::Status device = UseDevice();
    if (!device.ok()) return device;
  }
  const auto variables = PlaceVariables(contender, model);
  if (!variables.ok()) return variables.status();
  const auto expected = SumAnywhere(*variables);
  if (!expected.ok()) return expected.status();
  auto stepper = MakeStepper(contender, &*variables, options);
  if (!stepper.ok()) return stepper.status();
  const absl::Status path = AwaitPath(stepper->get());
  if (!path.ok()) return path;
  return Measure(stepper->get(), *expected, options);
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
  // Waits without a timeout, because each call of the child has a timeout.
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
