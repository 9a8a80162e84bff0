#include "cli/prober.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/interrupt.h"

namespace penstock::cli {
namespace {

constexpr char kHealthMethod[] = "/grpc.health.v1.Health/Check";
// The interval at which a wait checks for Ctrl-C.
constexpr std::chrono::milliseconds kLook(100);

// Returns true if the server itself sent this status. If there is no answer,
// gRPC makes a status, with one of a few codes. A code that servers also use
// counts as an answer.
bool IsAnswer(const grpc::Status& status) {
  // Excludes a status that gRPC itself has made from the HTTP status of a web
  // server.
  if (absl::StrContains(status.error_message(), "http1.x server") ||
      absl::StrContains(status.error_message(), "header with status")) {
    return false;
  }
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::FAILED_PRECONDITION:  // PENSTOCK_POLICY=require
      return false;
    default:
      return true;
  }
}

const char* CodeName(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::UNIMPLEMENTED:
      return "UNIMPLEMENTED";
    case grpc::StatusCode::UNAUTHENTICATED:
      return "UNAUTHENTICATED";
    case grpc::StatusCode::PERMISSION_DENIED:
      return "PERMISSION_DENIED";
    default:
      return "an error";
  }
}

grpc::Slice Payload(size_t bytes) {
  grpc::Slice slice(bytes);
  // Fills the payload. Each byte differs from its neighbours, so that a shift
  // is detected.
  auto* data = const_cast<uint8_t*>(slice.begin());
  for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<uint8_t>(i * 131);
  return slice;
}

// Returns a HealthCheckRequest with the payload in field 15, which is unknown
// to the server.
grpc::ByteBuffer HealthRequest(size_t bytes) {
  std::string head;
  if (bytes > 0) {
    head = "\x7a";  // field 15, length-delimited
    for (uint64_t left = bytes; left > 0; left >>= 7) {
      head.push_back(static_cast<char>((left & 0x7f) | (left >> 7 > 0) << 7));
    }
  }
  const grpc::Slice slices[] = {grpc::Slice(head), Payload(bytes)};
  return grpc::ByteBuffer(slices, 2);
}

bool IsEqual(const grpc::ByteBuffer& reply, const grpc::ByteBuffer& request) {
  std::vector<grpc::Slice> got;
  std::vector<grpc::Slice> sent;
  if (!reply.Dump(&got).ok() || !request.Dump(&sent).ok() ||
      reply.Length() != request.Length()) {
    return false;
  }
  // Compares with the first slice, because the payload was sent as one slice.
  const uint8_t* wanted = sent.empty() ? nullptr : sent.front().begin();
  for (const grpc::Slice& slice : got) {
    if (slice.size() == 0) continue;
    if (std::memcmp(slice.begin(), wanted, slice.size()) != 0) return false;
    wanted += slice.size();
  }
  return true;
}

}  // namespace

Prober::Prober(std::shared_ptr<grpc::Channel> channel, absl::Duration timeout)
    : channel_(std::move(channel)), stub_(channel_), timeout_(timeout) {}

grpc::Status Prober::Call(const char* method, const grpc::ByteBuffer& request,
                          grpc::ByteBuffer* reply) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       absl::ToChronoMicroseconds(timeout_));
  grpc::Status status;
  const auto call = stub_.PrepareUnaryCall(&context, method, request, &queue_);
  call->StartCall();
  call->Finish(reply, &status, this);
  void* tag = nullptr;
  bool ok = false;
  while (
      queue_.AsyncNext(&tag, &ok, std::chrono::system_clock::now() + kLook) ==
      grpc::CompletionQueue::TIMEOUT) {
    if (Interrupted()) context.TryCancel();
  }
  return status;
}

// Returns true if there is a connection. Needed because a call may end with any
// status even without a connection, for example for a target that gRPC cannot
// parse.
bool Prober::IsConnected() const {
  return channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
}

grpc::Status Prober::Find() {
  grpc::ByteBuffer reply;
  const grpc::Slice nothing;
  const grpc::ByteBuffer empty(&nothing, 1);
  grpc::Status echo = Call(kEchoMethod, empty, &reply);
  if (echo.ok()) {
    answer_ = Answer::kEcho;
    return echo;
  }
  if (!IsAnswer(echo) || !IsConnected()) return echo;
  answer_ = Answer::kStatus;
  expected_ = echo.error_code();
  if (expected_ != grpc::StatusCode::UNIMPLEMENTED) return grpc::Status::OK;
  grpc::Status health = Call(kHealthMethod, empty, &reply);
  if (!health.ok() && !IsAnswer(health)) return health;
  if (health.ok()) {
    answer_ = Answer::kHealth;
    expected_ = grpc::StatusCode::OK;
  }
  return grpc::Status::OK;
}

std::string Prober::Describe() const {
  switch (answer_) {
    case Answer::kEcho:
      return "its echo service";
    case Answer::kHealth:
      return "its health service; payload goes there only";
    case Answer::kStatus:
      return absl::StrCat("a method it does not have; it answers ",
                          CodeName(expected_),
                          ", before it reads payload, so none is sent");
  }
  return "";
}

grpc::Status Prober::Ping(size_t bytes, absl::Duration* took) {
  const bool is_echo = answer_ == Answer::kEcho;
  grpc::ByteBuffer request;
  if (answer_ == Answer::kHealth) {
    request = HealthRequest(bytes);
  } else {
    const grpc::Slice payload = Payload(is_echo ? bytes : 0);
    request = grpc::ByteBuffer(&payload, 1);
  }
  grpc::ByteBuffer reply;
  const auto begin = std::chrono::steady_clock::now();
  const grpc::Status status =
      Call(answer_ == Answer::kHealth ? kHealthMethod : kEchoMethod, request,
           &reply);
  if (status.error_code() != expected_) {
    return status.ok() ? grpc::Status(grpc::StatusCode::INTERNAL,
                                      "the server has changed")
                       : status;
  }
  if (is_echo && !IsEqual(reply, request)) {
    return grpc::Status(grpc::StatusCode::DATA_LOSS,
                        "the answer differs from what was sent");
  }
  *took = absl::FromChrono(std::chrono::steady_clock::now() - begin);
  return grpc::Status::OK;
}

}  // namespace penstock::cli
