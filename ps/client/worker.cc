#include "ps/client/worker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/client/awaited.h"
#include "ps/client/dense_values.h"
#include "ps/client/fanout.h"
#include "ps/client/patient_fanout.h"
#include "ps/client/random_id.h"
#include "tensor_service/calls.h"
#include "tensor_service/message.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

// Limits one message of Initialize(), in bytes. Far below gRPC's limit, but
// large enough to make the cost per message negligible.
constexpr size_t kInitializeBytes = size_t{1} << 30;
// Limits the number of empty pushes that align the servers' clocks. Larger than
// the number of pushes that a worker has in progress.
constexpr uint64_t kMostEmptySteps = 1024;

// All servers' answers to one push. Used in the loop's callbacks.
struct PushResult {
  Pushed pushed;
  size_t left;
  Worker::PushCallback done;
};

// Returns true if the push will never be applied.
bool IsRefused(const absl::StatusOr<PushVerdict>& verdict) {
  if (verdict.ok()) {
    return *verdict == PushVerdict::kDuplicate ||
           *verdict == PushVerdict::kLate;
  }
  return absl::IsInvalidArgument(verdict.status()) ||
         absl::IsResourceExhausted(verdict.status());
}

}  // namespace

Worker::Worker(Options options)
    : options_(std::move(options)),
      connection_(options_.connection),
      hash_(RandomId()),
      splitter_(connection_, hash_) {
  id_.set_rank(options_.rank);
  id_.set_incarnation(options_.incarnation);
}

// Stops the calls before the heartbeats end, because servers refuse calls after
// that.
Worker::~Worker() { loop_.Stop(); }

Puller Worker::AsPuller() {
  return {connection_, &loop_, id_, hash_,
          [this](size_t server) { return RejoinAt(server); }};
}

absl::StatusOr<std::unique_ptr<Worker>> Worker::Join(Options options) {
  const absl::Duration timeout = options.join_timeout;
  if (options.incarnation == 0) options.incarnation = RandomId();
  std::unique_ptr<Worker> worker(new Worker(std::move(options)));
  absl::Status status = worker->splitter_.MakeCoders(worker->options_.coder);
  if (status.ok()) status = worker->JoinAll(timeout);
  if (!status.ok()) return status;
  return worker;
}

absl::Status Worker::JoinAll(absl::Duration timeout) {
  v1::JoinRequest request;
  *request.mutable_view() = connection_->view();
  *request.mutable_worker() = id_;
  auto replies =
      connection_->routes().empty()
          ? Fanout(connection_->channels(), connection_->names())
                .Call("Join", request, timeout)
          : CallPatiently(connection_->routes(), connection_->names(), "Join",
                          request, timeout);
  if (!replies.ok()) {
    return absl::Status(replies.status().code(),
                        absl::StrCat("join: ", replies.status().message()));
  }
  absl::Duration lease = absl::InfiniteDuration();
  std::vector<uint64_t> clocks;
  for (size_t server = 0; server < replies->size(); ++server) {
    v1::JoinReply reply;
    absl::Status status = tensor::ToProto((*replies)[server], &reply);
    if (!status.ok()) return status;
    lease = std::min(lease, absl::Microseconds(reply.lease_us()));
    clocks.push_back(reply.clock());
    queues_.push_back(
        std::make_unique<PushQueue>(AsPuller(), server, reply.clock()));
  }
  heartbeats_ = std::make_unique<HeartbeatSender>(connection_->channels(),
                                                  connection_->run(), id_,
                                                  lease, connection_->routes());
  return AlignClocks(clocks);
}

// Makes the clocks of all servers equal, by empty pushes for the steps that
// only some servers still expect. The clocks differ if the last process of this
// rank died during a push, or if other workers ended a step between two
// answers. With different clocks, one push would belong to different steps at
// different servers, and no cut could contain all of it.
absl::Status Worker::AlignClocks(const std::vector<uint64_t>& clocks) {
  const auto [least, most] = std::minmax_element(clocks.begin(), clocks.end());
  if (*most - *least > kMostEmptySteps) {
    return absl::InternalError(absl::StrCat(
        "join: server ", least - clocks.begin(), " is at step ", *least,
        ", and server ", most - clocks.begin(), " is at step ", *most));
  }
  first_step_ = next_step_ = *most;
  const absl::Time deadline = base::SteadyNow() + options_.push_timeout;
  for (const auto& queue : queues_) queue->CatchUp(first_step_, deadline);
  return absl::OkStatus();
}

PatientCall::Rejoin Worker::RejoinAt(size_t server) {
  return [this, server](const std::function<void(absl::Status)>& done) {
    v1::JoinRequest request;
    *request.mutable_view() = connection_->view();
    *request.mutable_worker() = id_;
    PatientCall::Start(
        &loop_,
        {connection_->channels()[server], absl::StrCat(kServicePath, "Join"),
         tensor::FromProto(request), base::SteadyNow() + options_.join_timeout,
         nullptr, connection_->route(server)},
        /*rejoin=*/nullptr,
        [this, server, done](const CallLoop::Reply& reply, int) {
          v1::JoinReply joined;
          absl::Status status = reply.status();
          if (status.ok()) status = tensor::ToProto(*reply, &joined);
          if (status.ok()) queues_[server]->OnJoined(joined.clock());
          done(status);
        });
  };
}

std::vector<uint64_t> Worker::ClocksFor(uint64_t step) const {
  std::vector<uint64_t> clocks;
  clocks.reserve(queues_.size());
  for (const auto& queue : queues_) clocks.push_back(queue->ClockFor(step));
  return clocks;
}

// Returns the clock of a push. A repeated push keeps its clock, so that no
// server counts it twice.
uint64_t Worker::PushClockFor(uint64_t step) const {
  if (step + 1 == next_step_) return last_clock_;
  uint64_t clock = 0;
  for (const auto& queue : queues_) {
    clock = std::max(clock, queue->PushClockFor(step));
  }
  return clock;
}

void Worker::StartPull(uint64_t step, const PullSpec& spec, PullCallback done) {
  absl::Status status = PullCall::Start(
      AsPuller(), ClocksFor(step), spec, options_.pull_timeout,
      [this, step, done](absl::StatusOr<Pulled> pulled,
                         const PullAnswers& answers) {
        for (size_t server = 0; server < answers.size(); ++server) {
          if (!answers[server].has_value()) continue;
          queues_[server]->OnPulled(step, *answers[server]);
        }
        done(std::move(pulled));
      });
  if (status.ok()) return;
  loop_.Post([done = std::move(done), status] { done(status); });
}

// Checks that `step` is neither skipped nor old. Servers would wait for a
// skipped step forever, and would count an old step as a new one.
absl::Status Worker::CheckMayPush(uint64_t step) const {
  if (step == next_step_) return absl::OkStatus();
  if (step > next_step_) {
    return absl::InvalidArgumentError(
        absl::StrCat("step ", next_step_,
                     " is next; push each step, without gradients if there are "
                     "none"));
  }
  if (step + 1 == next_step_ && step >= first_step_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "this rank has pushed that step before; step ", next_step_, " is next",
      next_step_ == first_step_ ? ", which clock() says"
                                : ", and only the last push can be repeated"));
}

void Worker::StartPush(uint64_t step, const StepGradients& gradients,
                       PushCallback done) {
  const auto refuse = [&](const absl::Status& why) {
    absl::Status status(
        why.code(), absl::StrCat("push of step ", step, ": ", why.message()));
    loop_.Post([done = std::move(done), status] { done(status); });
  };
  const absl::Status may_push = CheckMayPush(step);
  if (!may_push.ok()) return refuse(may_push);
  auto servers = splitter_.Split(gradients, step);
  if (!servers.ok()) return refuse(servers.status());
  last_clock_ = PushClockFor(step);
  next_step_ = step + 1;
  auto result = std::make_shared<PushResult>();
  result->pushed.verdicts.resize(queues_.size());
  result->left = queues_.size();
  result->done = std::move(done);
  const absl::Time deadline = base::SteadyNow() + options_.push_timeout;
  for (size_t server = 0; server < queues_.size(); ++server) {
    queues_[server]->Push(
        step, last_clock_, (*servers)[server].bundle, deadline,
        [this, server, result, coded = std::move((*servers)[server].coded)](
            absl::StatusOr<PushVerdict> verdict) {
          if (IsRefused(verdict)) splitter_.TakeBack(coded);
          if (!result->done) return;  // another server's error was first
          if (!verdict.ok()) {
            return std::exchange(result->done, nullptr)(verdict.status());
          }
          result->pushed.verdicts[server] = *verdict;
          if (--result->left > 0) return;
          std::exchange(result->done, nullptr)(std::move(result->pushed));
        });
  }
}

absl::Status Worker::CheckMayBlock() const {
  if (!loop_.IsInCallback()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "a call that blocks, in a callback of the worker: it would wait for "
      "itself; start it instead");
}

absl::StatusOr<Pulled> Worker::Pull(uint64_t step, const PullSpec& spec) {
  absl::Status status = CheckMayBlock();
  if (!status.ok()) return status;
  Awaited<absl::StatusOr<Pulled>> answer(&loop_);
  StartPull(step, spec, answer.Callback());
  return answer.Wait();
}

absl::StatusOr<Pushed> Worker::Push(uint64_t step,
                                    const StepGradients& gradients) {
  absl::Status status = CheckMayBlock();
  if (!status.ok()) return status;
  Awaited<absl::StatusOr<Pushed>> answer(&loop_);
  StartPush(step, gradients, answer.Callback());
  return answer.Wait();
}

absl::Status Worker::Initialize(const tensor::Bundle& values) {
  absl::Status status = CheckMayBlock();
  if (!status.ok()) return status;
  auto parts = SplitTables(connection_->layout(), values, DenseKind::kValues);
  if (!parts.ok()) return parts.status();
  if (parts->size() < connection_->layout().parts().size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("initialize: there are values of ", values.tensors.size(),
                     " of ", connection_->layout().tables().size(),
                     " dense tables; give one for each"));
  }
  const absl::Time deadline = base::SteadyNow() + options_.push_timeout;
  for (size_t server = 0; server < queues_.size(); ++server) {
    if (connection_->had_values(server)) continue;
    tensor::Bundle bundle;
    for (PartTensor& part : *parts) {
      const PlacedPart& placed = connection_->layout().parts()[part.part];
      if (placed.server != server) continue;
      const bool is_full =
          bundle.byte_size() + part.tensor.byte_size() > kInitializeBytes;
      if (is_full && !bundle.tensors.empty()) {
        status = InitializeAt(server, std::exchange(bundle, {}), deadline);
        if (!status.ok()) return status;
      }
      bundle.tensors.push_back({placed.name, std::move(part.tensor)});
    }
    status = InitializeAt(server, std::move(bundle), deadline);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Worker::InitializeAt(size_t server, tensor::Bundle values,
                                  absl::Time deadline) {
  tensor::Message<v1::InitializeHeader> message;
  *message.header.mutable_view() = connection_->view();
  *message.header.mutable_worker() = id_;
  message.bundle = std::move(values);
  auto bytes = tensor::Encode(message);
  if (!bytes.ok()) return bytes.status();
  Awaited<CallLoop::Reply> answer(&loop_);
  PatientCall::Start(
      &loop_,
      {connection_->channels()[server],
       absl::StrCat(kServicePath, "Initialize"), *std::move(bytes), deadline,
       nullptr, connection_->route(server)},
      RejoinAt(server),
      [callback = answer.Callback()](CallLoop::Reply reply, int) {
        callback(std::move(reply));
      });
  const CallLoop::Reply reply = answer.Wait();
  if (reply.ok()) return absl::OkStatus();
  return connection_->Explain("initialize", server, reply.status());
}

void Worker::Leave() {
  loop_.Stop();
  if (heartbeats_ != nullptr) heartbeats_->Leave();
  heartbeats_ = nullptr;
}

}  // namespace penstock::ps
