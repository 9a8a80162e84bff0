#include "tests/adversary/caller.h"

#include <chrono>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/channel_arguments.h"
#include "penstock/penstock.h"
#include "tests/adversary/service.h"

namespace penstock::adversary {
namespace {

// The timeout of a call, after which it counts as hung.
constexpr std::chrono::seconds kDeadline(10);
// The pause between two rounds of calls, in which the attack can use the
// machine.
constexpr std::chrono::milliseconds kPause(20);
// Sizes below and above the eager limit.
constexpr size_t kSizes[] = {8, 100000};

Options Only(Fabric fabric) {
  Options options;
  options.policy = Policy::kRequire;
  options.fabrics = {fabric};
  return options;
}

}  // namespace

std::shared_ptr<grpc::Channel> NewChannel(int port, const Options& options,
                                          const Identity& identity) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(
      absl::StrCat("127.0.0.1:", port),
      Credentials(ChannelCredentials(identity), options), arguments);
}

grpc::Status Echo(grpc::Channel* channel, size_t size) {
  grpc::GenericStub stub(
      std::shared_ptr<grpc::Channel>(channel, [](grpc::Channel*) {}));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  const std::string text(size, 'e');
  const grpc::ByteBuffer request = ToBuffer(text);
  grpc::ByteBuffer response;
  grpc::Status result;
  std::mutex mu;
  std::condition_variable ended;
  bool has_ended = false;
  stub.UnaryCall(&context, kEcho, {}, &request, &response,
                 [&](grpc::Status status) {
                   std::lock_guard<std::mutex> lock(mu);
                   result = std::move(status);
                   has_ended = true;
                   ended.notify_one();
                 });
  std::unique_lock<std::mutex> lock(mu);
  ended.wait(lock, [&] { return has_ended; });
  if (result.ok() && ToText(response) != text) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "the echo is another");
  }
  return result;
}

Bystander::Bystander(int port, bool has_tcp, const Identity& identity)
    : port_(port),
      identity_(identity),
      tcp_(NewChannel(port, Only(has_tcp ? Fabric::kTcp : Fabric::kShm),
                      identity)),
      shm_(NewChannel(port, Only(Fabric::kShm), identity)),
      thread_([this] { Run(); }) {}

Bystander::~Bystander() { Stop(); }

void Bystander::Stop() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Bystander::AwaitCalls() {
  std::unique_lock<std::mutex> lock(mu_);
  // Waits for two rounds, because the current round may have begun before the
  // call of this function.
  wanted_rounds_ = rounds_ + 2;
  changed_.notify_all();
  changed_.wait(
      lock, [this] { return rounds_ >= wanted_rounds_ || !failure_.empty(); });
}

std::string Bystander::failure() const {
  std::lock_guard<std::mutex> lock(mu_);
  return failure_;
}

void Bystander::Run() {
  do {
    CallOnEach();
  } while (Pause());
}

void Bystander::CallOnEach() {
  for (size_t size : kSizes) {
    Check("tcp", Echo(tcp_.get(), size));
    Check("shm", Echo(shm_.get(), size));
  }
  ++connections_;
  Check("a new connection",
        Echo(NewChannel(port_, Options(), identity_).get(), kSizes[0]));
}

bool Bystander::Pause() {
  std::unique_lock<std::mutex> lock(mu_);
  ++rounds_;
  changed_.notify_all();
  changed_.wait_for(lock, kPause,
                    [this] { return stop_ || rounds_ < wanted_rounds_; });
  return !stop_;
}

void Bystander::Check(const char* what, const grpc::Status& status) {
  ++calls_;
  if (status.ok()) return;
  std::lock_guard<std::mutex> lock(mu_);
  if (!failure_.empty()) return;
  changed_.notify_all();
  failure_ = absl::StrCat("call ", calls_.load(), ", over ", what, ": ",
                          status.error_code(), " ", status.error_message());
}

}  // namespace penstock::adversary
