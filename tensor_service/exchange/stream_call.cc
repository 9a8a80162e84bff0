#include "tensor_service/exchange/stream_call.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor_service/calls.h"
#include "tensor_service/status.h"

namespace penstock::tensor {

StreamCall::StreamCall(const std::shared_ptr<grpc::Channel>& channel,
                       std::string method, absl::Duration timeout,
                       std::function<bool()> interrupted)
    : method_(std::move(method)), interrupted_(std::move(interrupted)) {
  context_.set_deadline(DeadlineAfter(timeout));
  context_.set_wait_for_ready(true);
  stream_ = grpc::GenericStub(channel).PrepareCall(&context_, method_, &queue_);
  stream_->StartCall(this);
  Wait();  // if this fails, later operations fail too
}

StreamCall::~StreamCall() {
  if (!finished_) {
    context_.TryCancel();
    Finish().IgnoreError();
  }
  queue_.Shutdown();
  void* tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) {
  }
}

// Waits for the only operation in progress.
bool StreamCall::Wait() {
  void* tag;
  bool ok = false;
  while (interrupted_) {
    if (queue_.AsyncNext(&tag, &ok, DeadlineAfter(kAskEvery)) !=
        grpc::CompletionQueue::TIMEOUT) {
      return ok;
    }
    if (!interrupted_()) continue;
    interrupted_ = nullptr;
    context_.TryCancel();
  }
  return queue_.Next(&tag, &ok) && ok;
}

bool StreamCall::Write(const grpc::ByteBuffer& message) {
  stream_->Write(message, this);
  return Wait();
}

bool StreamCall::WritesDone() {
  stream_->WritesDone(this);
  return Wait();
}

bool StreamCall::Read(grpc::ByteBuffer* message) {
  stream_->Read(message, this);
  return Wait();
}

absl::Status StreamCall::Finish() {
  grpc::Status status;
  stream_->Finish(&status, this);
  Wait();
  finished_ = true;
  return FromGrpc(status, absl::StrCat(method_, " at ", context_.peer()));
}

}  // namespace penstock::tensor
