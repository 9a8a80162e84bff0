#include "tests/soak/caller.h"

#include <chrono>
#include <future>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/client_callback.h"
#include "tests/soak/chat.h"
#include "tests/soak/chunk.h"
#include "tests/soak/service.h"

namespace penstock::soak {
namespace {

// The timeout of a call, after which it counts as hung.
constexpr std::chrono::seconds kPatience(60);
constexpr grpc::StatusCode kErrorCode = grpc::StatusCode::FAILED_PRECONDITION;

// Returns every byte value, in 64 bytes or 1 KiB.
std::string BinaryValue(uint64_t seed) {
  std::string value(seed % 2 == 0 ? 64 : 1024, '\0');
  for (size_t i = 0; i < value.size(); ++i) {
    value[i] = static_cast<char>(seed + i * 7);
  }
  return value;
}

std::chrono::system_clock::time_point DeadlineOf(const Plan& plan) {
  const auto now = std::chrono::system_clock::now();
  if (plan.ending != Ending::kDeadline) return now + kPatience;
  return now + std::chrono::milliseconds(1 + plan.seed % 10);
}

// Returns true if the plan allows the call to end with `code`. A download or a
// unary call may end before its planned end.
bool MayEndSo(const Plan& plan, grpc::StatusCode code) {
  const bool may_be_over =
      plan.kind == Kind::kUnary || plan.kind == Kind::kDownload;
  switch (plan.ending) {
    case Ending::kOk:
      return code == grpc::StatusCode::OK;
    case Ending::kError:
      return code == (plan.kind == Kind::kUpload ? grpc::StatusCode::DATA_LOSS
                                                 : kErrorCode);
    case Ending::kCancel:
      return code == grpc::StatusCode::CANCELLED ||
             (may_be_over && code == grpc::StatusCode::OK);
    case Ending::kDeadline:
      return code == grpc::StatusCode::DEADLINE_EXCEEDED ||
             (may_be_over && code == grpc::StatusCode::OK);
  }
  return false;
}

using Metadata = std::multimap<grpc::string_ref, grpc::string_ref>;

bool Has(const Metadata& metadata, const char* key, const std::string& value) {
  const auto found = metadata.find(key);
  return found != metadata.end() && found->second == value;
}

}  // namespace

struct Caller::Call {
  explicit Call(const Plan& plan) : plan(plan) {
    context.set_deadline(DeadlineOf(plan));
    if (!plan.metadata) return;
    context.AddMetadata(kEchoInitial, absl::StrCat(plan.seed));
    context.AddMetadata(kEchoTrailing, BinaryValue(plan.seed));
  }

  // Keeps the first error.
  void Fail(std::string what) {
    if (wrong.empty()) wrong = std::move(what);
  }

  // Checks that `response` answers a request with the sum `seed`.
  void Check(const Chunk& response, uint64_t seed) {
    if (response.body().size() != plan.response_bytes) {
      Fail(absl::StrCat("a response of ", response.body().size(), " bytes"));
    } else if (response.seed() != seed) {
      Fail("another call's response");
    } else if (!IsIntact(response)) {
      Fail("a response that was changed");
    }
  }

  Order NewOrder() {
    Order order;
    Fill(plan.request_bytes, plan.seed, order.mutable_chunk());
    order.set_response_bytes(plan.response_bytes);
    order.set_responses(plan.messages);
    return order;
  }
  void AddError(Order* order) {
    if (plan.ending != Ending::kError) return;
    order->set_code(kErrorCode);
    order->set_message(absl::StrCat("error ", plan.seed));
  }
  bool cancels() const { return plan.ending == Ending::kCancel; }

  void CheckEnd() {
    if (!MayEndSo(plan, status.error_code())) {
      return Fail(absl::StrCat("status ", status.error_code(), " ",
                               status.error_message()));
    }
    if (status.error_code() == kErrorCode &&
        status.error_message() != absl::StrCat("error ", plan.seed)) {
      Fail("another message: " + status.error_message());
    }
    const bool from_server = status.ok() || plan.ending == Ending::kError;
    if (!plan.metadata || !from_server) return;
    if (!Has(context.GetServerInitialMetadata(), kEchoInitial,
             absl::StrCat(plan.seed)) ||
        !Has(context.GetServerTrailingMetadata(), kEchoTrailing,
             BinaryValue(plan.seed))) {
      Fail(absl::StrCat(
          "metadata that does not come back, status ", status.error_code(),
          ", kind ", static_cast<int>(plan.kind), ", ending ",
          static_cast<int>(plan.ending),
          ", of the server: ", context.GetServerInitialMetadata().size(),
          " and ", context.GetServerTrailingMetadata().size()));
    }
  }

  const Plan plan;
  grpc::ClientContext context;
  grpc::Status status;
  std::string wrong;
};

Caller::~Caller() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

std::string Caller::Make(const Plan& plan) {
  Call call(plan);
  switch (plan.kind) {
    case Kind::kUnary:
      MakeUnary(&call);
      break;
    case Kind::kUpload:
      MakeUpload(&call);
      break;
    case Kind::kDownload:
      MakeDownload(&call);
      break;
    case Kind::kChat:
      MakeChat(&call);
      break;
  }
  call.CheckEnd();
  return std::move(call.wrong);
}

void Caller::MakeUnary(Call* call) {
  Order order = call->NewOrder();
  call->AddError(&order);
  Chunk response;
  call->status = Unary(call, order, &response);
  if (call->status.ok()) call->Check(response, order.chunk().sum());
}

grpc::Status Caller::Unary(Call* call, const Order& order, Chunk* response) {
  grpc::ClientContext* context = &call->context;
  grpc::Status status;
  if (call->plan.api == Api::kSync) {
    // Cancels first, because the following call blocks.
    if (call->cancels()) context->TryCancel();
    return stub_->Unary(context, order, response);
  }
  if (call->plan.api == Api::kAsync) {
    auto reader = stub_->AsyncUnary(context, order, &queue_);
    reader->Finish(response, &status, nullptr);
    if (call->cancels()) context->TryCancel();
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    return status;
  }
  std::promise<grpc::Status> done;
  stub_->async()->Unary(
      context, &order, response,
      [&done](grpc::Status status) { done.set_value(std::move(status)); });
  if (call->cancels()) context->TryCancel();
  return done.get_future().get();
}

void Caller::MakeUpload(Call* call) {
  const Plan& plan = call->plan;
  Chunk response;
  auto writer = stub_->Upload(&call->context, &response);
  uint64_t sum = 0;
  for (int i = 0; i < plan.messages; ++i) {
    Chunk chunk;
    Fill(plan.request_bytes, plan.seed + i, &chunk);
    if (plan.ending == Ending::kError) chunk.set_sum(chunk.sum() + 1);
    sum += chunk.sum();
    if (!writer->Write(chunk)) break;
  }
  if (call->cancels()) call->context.TryCancel();
  // Does not end the requests if the deadline must end the call. The server
  // then waits for more requests.
  if (plan.ending != Ending::kDeadline) writer->WritesDone();
  call->status = writer->Finish();
  if (call->status.ok() && response.sum() != sum) {
    call->Fail("an upload that was changed");
  }
}

void Caller::MakeDownload(Call* call) {
  Order order = call->NewOrder();
  call->AddError(&order);
  auto reader = stub_->Download(&call->context, order);
  Chunk response;
  int count = 0;
  while (reader->Read(&response)) {
    call->Check(response, order.chunk().sum());
    if (++count == 1 && call->cancels()) call->context.TryCancel();
  }
  call->status = reader->Finish();
  if (call->status.ok() && count != call->plan.messages) {
    call->Fail(absl::StrCat(count, " responses"));
  }
}

void Caller::MakeChat(Call* call) {
  const Plan& plan = call->plan;
  const auto chat = StartChat(plan.api, stub_.get(), &call->context, &queue_);
  Order order = call->NewOrder();
  Chunk response;
  bool goes_on = true;
  for (int i = 0; i < plan.messages && goes_on; ++i) {
    goes_on = chat->Write(order) && chat->Read(&response);
    if (goes_on) call->Check(response, order.chunk().sum());
  }
  if (goes_on && plan.ending == Ending::kError) {
    call->AddError(&order);
    goes_on = chat->Write(order);
  }
  if (call->cancels()) call->context.TryCancel();
  if (plan.ending == Ending::kOk) chat->WritesDone();
  // Expects that only the end of the call follows the last planned response.
  if (goes_on && chat->Read(&response)) call->Fail("a response too many");
  call->status = chat->Finish();
}

}  // namespace penstock::soak
