#include "ps/client.h"

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/reach.h"
#include "tensor_service/message.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

using v1::AwaitRequest;
using v1::InitializeHeader;
using v1::JoinReply;
using v1::JoinRequest;
using v1::PushHeader;
using v1::PushReply;

uint64_t RandomIncarnation() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

}  // namespace

Worker::Worker(Options options, std::vector<size_t> placement)
    : options_(std::move(options)),
      placement_(std::move(placement)),
      calls_(options_.servers),
      reader_(options_.servers, options_.variables) {}

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
  const absl::Time limit = base::SteadyNow() + options_.join_timeout;
  absl::Status reached = AwaitServers(options_.servers, options_.join_timeout);
  if (!reached.ok()) return reached;
  JoinRequest request;
  *request.mutable_worker() = id();
  auto replies = calls_.Call("Join", request, limit - base::SteadyNow());
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
  return calls_.Call("Initialize", requests, options_.transfer_timeout)
      .status();
}

absl::StatusOr<Worker::Pulled> Worker::Pull(uint64_t min_version) {
  return reader_.Pull(min_version,
                      options_.transfer_timeout + options_.barrier_timeout);
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
  auto replies = calls_.Call("Push", requests, options_.transfer_timeout);
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
  return calls_.Call("Await", request, options_.barrier_timeout).status();
}

void Worker::Leave() {
  if (heartbeats_ != nullptr) heartbeats_->SayGoodBye();
  heartbeats_ = nullptr;
}

}  // namespace penstock::ps
