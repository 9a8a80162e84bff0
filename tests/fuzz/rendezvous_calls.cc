#include "tests/fuzz/rendezvous_calls.h"

#include <memory>
#include <utility>

#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/calls.h"
#include "tensor_service/message.h"
#include "tensor_service/rendezvous.pb.h"
#include "tensor_service/rendezvous/rendezvous_convert.h"
#include "tests/fuzz/input.h"

namespace penstock {
namespace fuzz {
namespace {

tensor::Rendezvous::Options SmallOptions() {
  tensor::Rendezvous::Options options;
  options.budget_bytes = RendezvousCalls::kBudgetBytes;
  options.max_waiters = RendezvousCalls::kMaxWaiters;
  options.max_ended_steps = 8;
  options.clock = [] { return absl::UnixEpoch(); };
  return options;
}

grpc::ByteBuffer AsMessage(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

constexpr size_t RendezvousCalls::kBudgetBytes;
constexpr size_t RendezvousCalls::kMaxWaiters;

RendezvousCalls::RendezvousCalls() : rendezvous_(SmallOptions()) {}

RendezvousCalls::~RendezvousCalls() {
  (void)rendezvous_.CancelAll(absl::CancelledError("the end"));
  Require(rendezvous_.usage().bytes == 0, "nothing is kept after the end");
  for (const std::shared_ptr<Wait>& wait : waits_) {
    Require(wait->answers == 1, "a receive is answered once");
  }
}

void RendezvousCalls::Make(Call call, const std::string& bytes) {
  absl::Status status;
  switch (call) {
    case kSend:
      status = Send(bytes);
      break;
    case kReceive:
      status = Receive(bytes);
      break;
    case kExchange:
      status = Exchange(bytes);
      break;
    case kCancelStep:
      status = CancelStep(bytes);
      break;
    case kFinishStep:
      status = FinishStep(bytes);
      break;
    default:
      CancelOldest();
  }
  Require(status.message().size() <= kMaxErrorBytes, "errors are short");
  const tensor::Rendezvous::Usage usage = rendezvous_.usage();
  Require(usage.bytes <= kBudgetBytes, "the budget holds");
  Require(usage.waiters <= kMaxWaiters, "so does the limit of waiters");
}

absl::Status RendezvousCalls::HandleSend(const tensor::v1::SendHeader& header,
                                         const tensor::Bundle& bundle) {
  const tensor::RendezvousKey key = tensor::FromProto(header.key());
  absl::Status status = key.Check();
  if (!status.ok()) return status;
  absl::StatusOr<tensor::Tensor> only =
      tensor::OnlyTensor(bundle, header.is_dead(), "send " + key.ToString());
  if (!only.ok()) return only.status();
  return rendezvous_.Send(key, *only, tensor::OptionsOf(header));
}

absl::Status RendezvousCalls::Send(const std::string& bytes) {
  tensor::Message<tensor::v1::SendHeader> message;
  absl::Status status = tensor::Decode(AsMessage(bytes), &message);
  return status.ok() ? HandleSend(message.header, message.bundle) : status;
}

absl::Status RendezvousCalls::Receive(const std::string& bytes) {
  tensor::v1::ReceiveRequest request;
  absl::Status status = tensor::ToProto(AsMessage(bytes), &request);
  if (status.ok()) Await(tensor::FromProto(request.key()));
  return status;
}

absl::Status RendezvousCalls::Exchange(const std::string& bytes) {
  tensor::Message<tensor::v1::RendezvousExchangeHeader> message;
  absl::Status status = tensor::Decode(AsMessage(bytes), &message);
  const auto key = tensor::FromProto(message.header.receive());
  if (status.ok()) status = key.Check();
  if (status.ok()) status = HandleSend(message.header.send(), message.bundle);
  if (status.ok()) Await(key);
  return status;
}

absl::Status RendezvousCalls::CancelStep(const std::string& bytes) {
  tensor::v1::CancelStepRequest request;
  // The service's limit on status codes.
  constexpr uint32_t kLastCode = 16;
  if (!request.ParseFromString(bytes) || !request.has_step() ||
      request.code() == 0 || request.code() > kLastCode) {
    return absl::InvalidArgumentError("malformed");
  }
  return rendezvous_.CancelStep(
      request.step(),
      absl::Status(static_cast<absl::StatusCode>(request.code()),
                   request.message()));
}

absl::Status RendezvousCalls::FinishStep(const std::string& bytes) {
  tensor::v1::FinishStepRequest request;
  if (!request.ParseFromString(bytes) || !request.has_step()) {
    return absl::InvalidArgumentError("malformed");
  }
  rendezvous_.FinishStep(request.step());
  return absl::OkStatus();
}

void RendezvousCalls::Await(const tensor::RendezvousKey& key) {
  auto wait = std::make_shared<Wait>();
  waits_.push_back(wait);
  wait->number = rendezvous_.Receive(key, [wait](auto received) {
    ++wait->answers;
    Require(received.status().message().size() <= kMaxErrorBytes,
            "errors are short");
  });
}

void RendezvousCalls::CancelOldest() {
  if (next_to_cancel_ == waits_.size()) return;
  const std::shared_ptr<Wait>& wait = waits_[next_to_cancel_++];
  (void)rendezvous_.Cancel(wait->number, absl::CancelledError("cancelled"));
  Require(wait->answers == 1, "what is cancelled is answered");
}

}  // namespace fuzz
}  // namespace penstock
