#include "tests/adversary/calls.h"

#include <condition_variable>
#include <utility>

#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/client_callback.h"
#include "tests/adversary/caller.h"
#include "tests/adversary/service.h"

namespace penstock::adversary {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSmallBytes = 8;
constexpr size_t kLargeBytes = 1 << 20;

class OneCall final
    : public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  OneCall(const std::shared_ptr<grpc::Channel>& channel, Kind kind)
      : kind_(kind), stub_(channel) {
    context_.set_deadline(std::chrono::system_clock::now() + kCallDeadline);
    stub_.PrepareBidiStreamingCall(&context_, kEcho, {}, this);
    Write();
    if (kind != Kind::kUnread) StartRead(&response_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (ok) StartRead(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (ok && kind_ == Kind::kLarge) Write();
  }
  void OnDone(const grpc::Status& status) override {
    std::lock_guard<std::mutex> lock(mu_);
    outcome_.code = status.error_code();
    outcome_.message = status.error_message();
    outcome_.seconds =
        std::chrono::duration<double>(Clock::now() - begun_).count();
    is_done_ = true;
    done_.notify_one();
  }

  Outcome Await(const std::atomic<bool>& stop) {
    std::unique_lock<std::mutex> lock(mu_);
    while (!is_done_) {
      done_.wait_for(lock, std::chrono::milliseconds(100));
      if (stop) context_.TryCancel();
    }
    return outcome_;
  }

 private:
  // Writes each message in separate memory.
  void Write() {
    message_ = ToBuffer(
        std::string(kind_ == Kind::kLarge ? kLargeBytes : kSmallBytes, 'q'));
    StartWrite(&message_);
  }

  const Kind kind_;
  const Clock::time_point begun_ = Clock::now();
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer message_;
  grpc::ByteBuffer response_;
  std::mutex mu_;
  std::condition_variable done_;
  bool is_done_ = false;
  Outcome outcome_;
};

}  // namespace

Kind KindOf(const std::string& name) {
  for (Kind kind : {Kind::kUnread, Kind::kLarge}) {
    if (name == NameOf(kind)) return kind;
  }
  return Kind::kDuplex;
}

std::string NameOf(Kind kind) {
  switch (kind) {
    case Kind::kDuplex:
      return "duplex";
    case Kind::kUnread:
      return "unread";
    case Kind::kLarge:
      return "large";
  }
  return "";
}

Quarry::Quarry(int port, Kind kind, int calls, const Identity& identity)
    : port_(port),
      kind_(kind),
      calls_(calls),
      identity_(identity),
      thread_([this] { Run(); }) {}

Quarry::~Quarry() {
  stop_ = true;
  thread_.join();
}

std::vector<PathReport> Quarry::Describe() {
  std::lock_guard<std::mutex> lock(mu_);
  if (channel_ == nullptr) return {};
  return DescribePaths(*channel_);
}

std::vector<Outcome> Quarry::TakeOutcomes() {
  std::lock_guard<std::mutex> lock(mu_);
  return std::exchange(outcomes_, {});
}

void Quarry::Run() {
  while (!stop_) {
    std::shared_ptr<grpc::Channel> channel =
        NewChannel(port_, Options(), identity_);
    {
      std::lock_guard<std::mutex> lock(mu_);
      channel_ = channel;
    }
    std::vector<std::unique_ptr<OneCall>> calls;
    for (int i = 0; i < calls_; ++i) {
      calls.push_back(std::make_unique<OneCall>(channel, kind_));
    }
    for (const auto& call : calls) {
      Outcome outcome = call->Await(stop_);
      std::lock_guard<std::mutex> lock(mu_);
      outcomes_.push_back(std::move(outcome));
    }
  }
}

}  // namespace penstock::adversary
