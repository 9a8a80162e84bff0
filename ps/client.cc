#include "ps/client.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tensor_service/message.h"

namespace penstock::ps {
namespace {

using v1::AwaitRequest;
using v1::InitializeHeader;
using v1::JoinReply;
using v1::JoinRequest;
using v1::PullHeader;
using v1::PullRequest;
using v1::PushHeader;
using v1::PushReply;

constexpr char kService[] = "/penstock.ps.v1.ParameterServer/";

uint64_t RandomIncarnation() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

}  // namespace

Worker::Worker(Options options, std::vector<size_t> placement)
    : options_(std::move(options)), placement_(std::move(placement)) {}

Worker::~Worker() = default;

v1::WorkerId Worker::id() const {
  v1::WorkerId id;
  id.set_rank(options_.rank);
  id.set_incarnation(options_.incarnation);
  return id;
}

absl::StatusOr<std::unique_ptr<Worker>> Worker::Join(Options options) {
  absl::StatusOr<std::vector<size_t>> placement =
      Place(options.variables, options.servers.size());
  if (!placement.ok()) return placement.status();
  if (options.incarnation == 0) options.incarnation = RandomIncarnation();
  std::unique_ptr<Worker> worker(
      new Worker(std::move(options), *std::move(placement)));
  absl::Status joined = worker->JoinAll();
  if (!joined.ok()) return joined;
  return worker;
}

absl::Status Worker::JoinAll() {
  JoinRequest request;
  *request.mutable_worker() = id();
  std::vector<grpc::ByteBuffer> requests(options_.servers.size(),
                                         tensor::FromProto(request));
  auto replies = CallAll("Join", requests, options_.join_timeout);
  if (!replies.ok()) return replies.status();
  absl::Duration lease = absl::InfiniteDuration();
  for (const grpc::ByteBuffer& bytes : *replies) {
    JoinReply reply;
    absl::Status status = tensor::ToProto(bytes, &reply);
    if (!status.ok()) return status;
    lease = std::min(lease, absl::Microseconds(reply.lease_us()));
  }
  heartbeats_ =
      std::make_unique<HeartbeatSender>(options_.servers, id(), lease);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<grpc::ByteBuffer>> Worker::CallAll(
    const std::string& method, const std::vector<grpc::ByteBuffer>& requests,
    absl::Duration timeout) {
  absl::Time deadline = absl::Now() + timeout;
  for (size_t i = 0; i < requests.size(); ++i) {
    calls_.Start(options_.servers[i], absl::StrCat(kService, method),
                 requests[i], deadline);
  }
  std::vector<grpc::ByteBuffer> replies;
  for (tensor::CallQueue::Result& result : calls_.Wait()) {
    if (!result.status.ok()) {
      return absl::Status(result.status.code(),
                          absl::StrCat("server ", replies.size(), ": ",
                                       result.status.message()));
    }
    replies.push_back(std::move(result.reply));
  }
  return replies;
}

absl::StatusOr<std::vector<tensor::Bundle>> Worker::Split(
    const tensor::Bundle& bundle) const {
  std::map<std::string, size_t> server_of;
  for (size_t i = 0; i < placement_.size(); ++i) {
    server_of[options_.variables[i].name] = placement_[i];
  }
  std::vector<tensor::Bundle> parts(options_.servers.size());
  for (const tensor::NamedTensor& named : bundle.tensors) {
    auto server = server_of.find(named.name);
    if (server == server_of.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable ", named.name, ": not one of this worker's"));
    }
    parts[server->second].tensors.push_back(named);
  }
  return parts;
}

absl::Status Worker::Initialize(const tensor::Bundle& values) {
  absl::StatusOr<std::vector<tensor::Bundle>> parts = Split(values);
  if (!parts.ok()) return parts.status();
  std::vector<grpc::ByteBuffer> requests;
  for (tensor::Bundle& part : *parts) {
    tensor::Message<InitializeHeader> message;
    *message.header.mutable_worker() = id();
    message.bundle = std::move(part);
    absl::StatusOr<grpc::ByteBuffer> bytes = tensor::Encode(message);
    if (!bytes.ok()) return bytes.status();
    requests.push_back(*std::move(bytes));
  }
  return CallAll("Initialize", requests, options_.transfer_timeout).status();
}

absl::StatusOr<Worker::Pulled> Worker::Pull(uint64_t min_version) {
  PullRequest request;
  request.set_min_version(min_version);
  std::vector<grpc::ByteBuffer> requests(options_.servers.size(),
                                         tensor::FromProto(request));
  auto replies = CallAll("Pull", requests,
                         options_.transfer_timeout + options_.barrier_timeout);
  if (!replies.ok()) return replies.status();
  Pulled pulled{UINT64_MAX, {}};
  std::map<std::string, tensor::Tensor> by_name;
  for (const grpc::ByteBuffer& bytes : *replies) {
    tensor::Message<PullHeader> message;
    absl::Status status = tensor::Decode(bytes, &message);
    if (!status.ok()) return status;
    pulled.version = std::min(pulled.version, message.header.version());
    for (tensor::NamedTensor& named : message.bundle.tensors) {
      by_name[named.name] = std::move(named.tensor);
    }
  }
  for (const VariableSpec& spec : options_.variables) {
    auto found = by_name.find(spec.name);
    if (found == by_name.end() || found->second.dtype() != spec.dtype ||
        found->second.shape() != spec.shape) {
      return absl::FailedPreconditionError(absl::StrCat(
          "pull: variable ", spec.name, " is ",
          found == by_name.end() ? "missing" : found->second.ToString(),
          ", expected ", Describe(spec.dtype, spec.shape)));
    }
    pulled.variables.tensors.push_back({spec.name, found->second});
  }
  return pulled;
}

absl::StatusOr<Worker::Pushed> Worker::Push(uint64_t step,
                                            const tensor::Bundle& gradients) {
  absl::StatusOr<std::vector<tensor::Bundle>> parts = Split(gradients);
  if (!parts.ok()) return parts.status();
  std::vector<grpc::ByteBuffer> requests;
  for (tensor::Bundle& part : *parts) {
    tensor::Message<PushHeader> message;
    *message.header.mutable_worker() = id();
    message.header.set_step(step);
    message.bundle = std::move(part);
    absl::StatusOr<grpc::ByteBuffer> bytes = tensor::Encode(message);
    if (!bytes.ok()) return bytes.status();
    requests.push_back(*std::move(bytes));
  }
  auto replies = CallAll("Push", requests, options_.transfer_timeout);
  if (!replies.ok()) return replies.status();
  Pushed pushed{true, 0};
  for (const grpc::ByteBuffer& bytes : *replies) {
    PushReply reply;
    absl::Status status = tensor::ToProto(bytes, &reply);
    if (!status.ok()) return status;
    pushed.counted = pushed.counted && reply.counted();
    pushed.version = std::max(pushed.version, reply.version());
  }
  return pushed;
}

absl::Status Worker::Await(uint64_t version) {
  AwaitRequest request;
  *request.mutable_worker() = id();
  request.set_version(version);
  std::vector<grpc::ByteBuffer> requests(options_.servers.size(),
                                         tensor::FromProto(request));
  return CallAll("Await", requests, options_.barrier_timeout).status();
}

void Worker::Leave() {
  if (heartbeats_ != nullptr) heartbeats_->SayGoodBye();
  heartbeats_ = nullptr;
}

}  // namespace penstock::ps
