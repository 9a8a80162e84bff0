#include "tensor_service/calls.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/time/clock.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "tensor_service/device_memory.h"
#include "tensor_service/status.h"

namespace penstock::tensor {
namespace {

// Limits the wait for memory to which an abandoned read may still write. The
// wait usually takes microseconds. An RDMA device that completes nothing for 3
// s is abandoned.
constexpr absl::Duration kFreeLimit = absl::Seconds(10);
constexpr absl::Duration kLookEvery = absl::Milliseconds(1);

// The length of the first pause. Short, because the condition often becomes
// true soon.
constexpr absl::Duration kFirstPause = absl::Microseconds(10);

}  // namespace

grpc::ByteBuffer FromProto(const google::protobuf::MessageLite& message) {
  grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

namespace {

// Returns true if all slices are on the host. Protobuf reads all bytes, and the
// CPU cannot read bytes on a device.
bool IsOnHost(const grpc::ByteBuffer& bytes) {
  const DeviceMemory* const memory = GetDeviceMemory();
  std::vector<grpc::Slice> slices;
  if (memory == nullptr || !bytes.Valid()) return true;
  if (!bytes.Dump(&slices).ok()) return true;  // the parser reports the error
  for (const grpc::Slice& slice : slices) {
    if (!memory->DeviceOfSlice(slice.begin()).is_host()) return false;
  }
  return true;
}

}  // namespace

absl::Status ToProto(const grpc::ByteBuffer& bytes,
                     google::protobuf::MessageLite* message) {
  if (!IsOnHost(bytes)) {
    return absl::InvalidArgumentError(
        "read message: a part of it lies on a device");
  }
  grpc::Slice slice;
  if (bytes.Valid() && !bytes.DumpToSingleSlice(&slice).ok()) {
    return absl::InvalidArgumentError("read message: cannot decompress it");
  }
  if (slice.size() > INT32_MAX ||
      !message->ParseFromArray(slice.begin(), static_cast<int>(slice.size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat("read message: not a ", message->GetTypeName()));
  }
  return absl::OkStatus();
}

gpr_timespec DeadlineAfter(absl::Duration timeout) {
  return gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_nanos(absl::ToInt64Nanoseconds(timeout), GPR_TIMESPAN));
}

struct CallQueue::Call {
  std::string method;
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer reply;
  grpc::Status status;
};

CallQueue::CallQueue(std::function<bool()> interrupted)
    : interrupted_(std::move(interrupted)) {}

CallQueue::~CallQueue() {
  Wait();
  queue_.Shutdown();
  void* tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) {
  }
}

void CallQueue::AddMetadata(std::string key, std::string value) {
  metadata_.emplace_back(std::move(key), std::move(value));
}

void CallQueue::Start(const std::shared_ptr<grpc::Channel>& channel,
                      const std::string& method,
                      const grpc::ByteBuffer& request, absl::Duration timeout,
                      const PostedRanges* posted) {
  auto call = std::make_unique<Call>();
  call->method = method;
  call->context.set_deadline(DeadlineAfter(timeout));
  call->context.set_wait_for_ready(true);
  for (const auto& entry : metadata_) {
    call->context.AddMetadata(entry.first, entry.second);
  }
  grpc::GenericStub stub(channel);
  call->reader =
      stub.PrepareUnaryCall(&call->context, method, request, &queue_);
  if (posted != nullptr) posted->AttachTo(&call->context);
  call->reader->StartCall();
  call->reader->Finish(&call->reply, &call->status, call.get());
  calls_.push_back(std::move(call));
}

bool CallQueue::IsInterrupted() {
  if (!interrupted_ || !interrupted_()) return false;
  interrupted_ = nullptr;
  return true;
}

absl::Status CallQueue::Await(absl::FunctionRef<absl::StatusOr<bool>()> is_done,
                              absl::Duration* timeout) {
  using Clock = std::chrono::steady_clock;  // the system's clock may be set
  const Clock::time_point begin = Clock::now();
  const absl::Duration limit = *timeout;
  absl::Duration asked;
  for (absl::Duration pause = kFirstPause;;
       pause = std::min(2 * pause, kLookEvery)) {
    absl::StatusOr<bool> done = is_done();
    const absl::Duration elapsed = absl::FromChrono(Clock::now() - begin);
    *timeout = std::max(limit - elapsed, absl::ZeroDuration());
    if (!done.ok()) return done.status();
    if (*done) return absl::OkStatus();
    if (elapsed >= limit) {
      return absl::DeadlineExceededError(
          absl::StrCat("not within ", absl::FormatDuration(limit)));
    }
    if (elapsed - asked >= kAskEvery) {
      asked = elapsed;
      if (IsInterrupted()) return absl::CancelledError("interrupted");
    }
    absl::SleepFor(std::min(pause, *timeout));
  }
}

void CallQueue::AwaitOne() {
  void* tag;
  bool ok;
  while (interrupted_) {
    if (queue_.AsyncNext(&tag, &ok, DeadlineAfter(kAskEvery)) !=
        grpc::CompletionQueue::TIMEOUT) {
      return;
    }
    if (!IsInterrupted()) continue;
    for (const std::unique_ptr<Call>& call : calls_) {
      call->context.TryCancel();
    }
  }
  queue_.Next(&tag, &ok);
}

// Waits in gRPC, because possibly no other thread polls, and polling may be
// needed for progress.
bool CallQueue::AwaitFree(const PostedRanges& posted) {
  using Clock = std::chrono::steady_clock;  // the system's clock may be set
  const Clock::time_point limit =
      Clock::now() + absl::ToChronoNanoseconds(kFreeLimit);
  while (posted.in_use() && Clock::now() < limit) {
    void* tag;
    bool ok;
    queue_.AsyncNext(&tag, &ok, DeadlineAfter(kLookEvery));
  }
  return !posted.in_use();
}

std::vector<CallQueue::Result> CallQueue::Wait() {
  for (size_t i = 0; i < calls_.size(); ++i) AwaitOne();
  std::vector<Result> results;
  for (std::unique_ptr<Call>& call : calls_) {
    Result result;
    result.status = FromGrpc(
        call->status, absl::StrCat(call->method, " at ", call->context.peer()));
    if (result.status.ok()) result.reply.Swap(&call->reply);
    results.push_back(std::move(result));
  }
  calls_.clear();
  return results;
}

}  // namespace penstock::tensor
