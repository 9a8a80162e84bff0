#include "tests/ps/simulation/mail.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "ps/wire/ps.pb.h"
#include "tensor_service/calls.h"

namespace penstock::ps {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::InterceptorBatchMethods;

namespace {

std::string MethodIn(absl::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// Passes an answer to the client's gRPC call.
void Give(const LetterPtr& letter, const grpc::Status& status,
          const grpc::ByteBuffer& reply) {
  InterceptorBatchMethods* const batch = std::exchange(letter->batch, nullptr);
  *batch->GetRecvStatus() = status;
  if (status.ok() && letter->is_typed) {
    auto* const message =
        static_cast<google::protobuf::MessageLite*>(batch->GetRecvMessage());
    tensor::ToProto(reply, message).IgnoreError();
  } else if (status.ok() && batch->GetRecvMessage() != nullptr) {
    *static_cast<grpc::ByteBuffer*>(batch->GetRecvMessage()) = reply;
  }
  batch->Proceed();
}

}  // namespace

std::string Letter::Text() const {
  const char* where = "";
  switch (stage) {
    case Stage::kSent:
      where = "sent";
      break;
    case Stage::kAtServer:
      where = "at the server";
      break;
    case Stage::kAnswered:
      where = status.ok() ? "answered" : "refused: ";
      break;
  }
  return absl::StrCat(method, " of client ", client, " for server ", server,
                      is_ghost ? ", a ghost, " : ", ", where,
                      status.error_message());
}

// Takes each call of a channel from gRPC, and turns the call into a letter.
class Mail::Interceptor final : public grpc::experimental::Interceptor {
 public:
  Interceptor(Mail* mail, LetterPtr letter)
      : mail_(mail), letter_(std::move(letter)) {}

  void Intercept(InterceptorBatchMethods* batch) override {
    const auto has = [&](InterceptionHookPoints hook) {
      return batch->QueryInterceptionHookPoint(hook);
    };
    if (has(InterceptionHookPoints::PRE_SEND_CANCEL)) {
      absl::MutexLock lock(&mail_->mu_);
      letter_->is_cancelled = true;
      return;
    }
    if (has(InterceptionHookPoints::PRE_SEND_MESSAGE)) Read(batch);
    if (has(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      return batch->Hijack();  // comes again, with PRE_RECV_STATUS
    }
    if (has(InterceptionHookPoints::PRE_RECV_STATUS)) {
      letter_->batch = batch;
      if (is_stream() || is_abandoned()) {
        return Give(letter_, grpc::Status::CANCELLED, {});
      }
      return mail_->Post(letter_);
    }
    batch->Proceed();
  }

 private:
  bool is_stream() const { return letter_->method == "Attend"; }
  // Returns true if the client's calls must be cancelled. The simulation may be
  // in the client's destructor at that time, and the destructor waits for the
  // calls.
  bool is_abandoned() const {
    absl::MutexLock lock(&mail_->mu_);
    return mail_->abandoned_.count(letter_->client) > 0;
  }

  void Read(InterceptorBatchMethods* batch) {
    // True for a synchronous call: gRPC has not encoded its message yet. The
    // messages of asynchronous calls are encoded at once.
    letter_->is_typed = batch->GetSendMessage() != nullptr;
    letter_->request = *batch->GetSerializedSendMessage();
    v1::Heartbeat beat;
    if (!is_stream()) return;
    if (!tensor::ToProto(letter_->request, &beat).ok() || !beat.leaving()) {
      return;
    }
    absl::MutexLock lock(&mail_->mu_);
    mail_->farewells_.push_back({letter_->client, letter_->server});
  }

  Mail* const mail_;
  const LetterPtr letter_;
};

class Mail::Factory final
    : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  Factory(Mail* mail, uint64_t client, size_t server)
      : mail_(mail), client_(client), server_(server) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo* info) override {
    auto letter = std::make_shared<Letter>();
    letter->client = client_;
    letter->server = server_;
    letter->method = MethodIn(info->method());
    return new Interceptor(mail_, std::move(letter));
  }

 private:
  Mail* const mail_;
  const uint64_t client_;
  const size_t server_;
};

// Returns channels that never connect. The interceptor takes each call before
// gRPC connects.
TrainingConnection::Channels Mail::ChannelsOf(uint64_t client, size_t servers) {
  TrainingConnection::Channels channels;
  for (size_t server = 0; server < servers; ++server) {
    std::vector<
        std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>
        factories;
    factories.push_back(std::make_unique<Factory>(this, client, server));
    channels.push_back(grpc::experimental::CreateCustomChannelWithInterceptors(
        "unix:/dev/null/nobody", grpc::InsecureChannelCredentials(),
        grpc::ChannelArguments(), std::move(factories)));
  }
  return channels;
}

void Mail::Post(const LetterPtr& letter) {
  absl::MutexLock lock(&mu_);
  letter->number = ++numbers_;
  letters_.push_back(letter);
}

void Mail::Remove(const LetterPtr& letter) {
  letters_.erase(std::remove(letters_.begin(), letters_.end(), letter),
                 letters_.end());
  ghosts_.erase(std::remove(ghosts_.begin(), ghosts_.end(), letter),
                ghosts_.end());
}

std::vector<LetterPtr> Mail::Open() const {
  absl::MutexLock lock(&mu_);
  std::vector<LetterPtr> open = letters_;
  std::sort(open.begin(), open.end(), [](const auto& a, const auto& b) {
    return std::tie(a->client, a->number) < std::tie(b->client, b->number);
  });
  open.insert(open.end(), ghosts_.begin(), ghosts_.end());
  return open;
}

bool Mail::HasOpen(uint64_t client) const {
  absl::MutexLock lock(&mu_);
  return std::any_of(
      letters_.begin(), letters_.end(),
      [&](const LetterPtr& letter) { return letter->client == client; });
}

std::vector<Mail::Farewell> Mail::TakeFarewells() {
  absl::MutexLock lock(&mu_);
  return std::exchange(farewells_, {});
}

void Mail::Answer(const LetterPtr& letter, const grpc::Status& status,
                  const grpc::ByteBuffer& reply) {
  absl::MutexLock lock(&mu_);
  if (letter->stage != Letter::Stage::kAtServer) return;
  letter->stage = Letter::Stage::kAnswered;
  letter->status = status;
  letter->reply = reply;
  letter->cancel = nullptr;
}

void Mail::Return(const LetterPtr& letter) {
  {
    absl::MutexLock lock(&mu_);
    Remove(letter);
  }
  if (!letter->is_ghost) Give(letter, letter->status, letter->reply);
}

void Mail::Fail(const LetterPtr& letter, const grpc::Status& status,
                bool leaves_ghost) {
  {
    absl::MutexLock lock(&mu_);
    Remove(letter);
    leaves_ghost |= letter->stage == Letter::Stage::kAtServer;
    letter->is_ghost = true;
    if (leaves_ghost) ghosts_.push_back(letter);
  }
  Give(letter, status, {});
}

bool Mail::ReturnCancelled() {
  bool found = false;
  for (const LetterPtr& letter : Open()) {
    if (letter->is_ghost || !letter->is_cancelled) continue;
    found = true;
    Fail(letter, {grpc::StatusCode::CANCELLED, "the caller has cancelled"});
  }
  return found;
}

void Mail::Abandon(uint64_t client) {
  absl::MutexLock lock(&mu_);
  abandoned_.insert(client);
  for (const LetterPtr& letter : letters_) {
    letter->is_cancelled |= letter->client == client;
  }
}

void Mail::Drop(const LetterPtr& ghost) {
  absl::MutexLock lock(&mu_);
  Remove(ghost);
}

}  // namespace penstock::ps
