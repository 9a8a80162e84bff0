#include "tests/oracle/world.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "grpcpp/create_channel.h"
#include "grpcpp/security/server_credentials.h"
#include "penstock/penstock.h"
#include "tests/e2e/adapter.h"
#include "tests/e2e/shm_loss.h"
#include "tests/oracle/client_call.h"
#include "tests/oracle/content.h"
#include "tests/oracle/player.h"

namespace penstock::oracle {
namespace {

// The index of the bystanders' channel, after the channels of the program.
constexpr size_t kBystanders = kChannels;
constexpr int kMostEchoes = 20;
// The number of connections that every program makes, for the bystanders.
constexpr size_t kConnections = 2;

void SetIfGiven(grpc::ChannelArguments* arguments, const char* name,
                int value) {
  if (value != kDefault) arguments->SetInt(name, value);
}

void SetUp(const Settings& settings, grpc::ServerBuilder* builder) {
  if (settings.server_receives != kDefault) {
    builder->SetMaxReceiveMessageSize(settings.server_receives);
  }
  if (settings.server_metadata != kDefault) {
    builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE,
                                settings.server_metadata);
  }
  if (settings.streams_at_once != kDefault) {
    builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                                settings.streams_at_once);
  }
}

}  // namespace

World::World(const Route& route, const Program& program)
    : route_(route),
      program_(program),
      pump_(std::make_unique<grpc::CompletionQueue>()),
      cases_(program.calls.size()) {
  StartServer();
  for (auto& channel : channels_) channel = NewChannel();
}

World::~World() {
  DropChannels();
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  crew_.Join();
  for (auto& service : services_) service->End();
  crew_.Join();
  server_.reset();
}

void World::StartServer() {
  grpc::ServerBuilder builder;
  route_.Enable(&builder);
  builder.AddListeningPort("127.0.0.1:0", route_.ServerCredentials(), &port_);
  SetUp(program_.settings, &builder);
  services_.push_back(NewSyncService(&handler_));
  services_.push_back(NewAsyncService(&handler_, &crew_));
  services_.push_back(NewCallbackService(&handler_, &crew_));
  services_.push_back(program_.settings.generic_is_callback
                          ? NewGenericCallbackService(&handler_, &crew_)
                          : NewGenericAsyncService(&handler_, &crew_));
  for (auto& service : services_) service->Register(&builder);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) std::abort();
  for (auto& service : services_) service->Begin();
}

std::shared_ptr<grpc::Channel> World::NewChannel() const {
  const Settings& settings = program_.settings;
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Disables retries. With a deadline and gRPC 1.51.1's retries, a read may
  // wait forever, over any transport (--path=stock --seed=200441).
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  SetIfGiven(&arguments, GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
             settings.client_receives);
  SetIfGiven(&arguments, GRPC_ARG_MAX_METADATA_SIZE, settings.client_metadata);
  return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port_),
                                   route_.Credentials(), arguments);
}

std::shared_ptr<grpc::Channel> World::ChannelAt(size_t index) {
  std::lock_guard<std::mutex> lock(mu_);
  return channels_[index];
}

void World::DropChannels() {
  auto dropped = channels_;
  std::lock_guard<std::mutex> lock(mu_);
  for (auto& channel : channels_) channel.reset();
}

Result World::Run() {
  Crew crew;
  crew.Run([this] { MakeCalls(/*rough=*/true); });
  crew.Run([this] { Befall(); });
  crew.Run([this] { RunBystander(0); });
  crew.Run([this] { RunBystander(kBystanders); });
  std::vector<std::thread> callers;
  for (int i = 0; i < program_.threads; ++i) {
    callers.emplace_back([this] { MakeCalls(/*rough=*/false); });
  }
  for (std::thread& thread : callers) thread.join();
  over_ = true;
  crew.Join();
  Result result;
  for (size_t i = 0; i < channels_.size(); ++i) {
    for (const PathReport& report : DescribePaths(*ChannelAt(i))) {
      result.paths.push_back(report.path);
    }
  }
  DropChannels();
  server_->Shutdown(std::chrono::system_clock::now() + kPatience);
  server_->Wait();
  crew_.Join();
  for (Case& each : cases_) result.outcomes.push_back(std::move(each.outcome));
  result.complaints = std::move(complaints_);
  return result;
}

void World::MakeCalls(bool rough) {
  if (rough) {
    for (const Plan& plan : program_.calls) {
      if (plan.channel == kRoughChannel) MakeCall(plan);
    }
    return;
  }
  while (true) {
    const size_t index = next_++;
    if (index >= program_.calls.size()) return;
    const Plan& plan = program_.calls[index];
    if (plan.channel != kRoughChannel) MakeCall(plan);
  }
}

void World::MakeCall(const Plan& plan) {
  Case& the_case = cases_[plan.number];
  const auto begin = std::chrono::steady_clock::now();
  PlayClient(
      plan, ChannelAt(plan.channel), pump_.queue(), &the_case.meeting,
      [this, &plan] { Settle(plan.channel); }, &the_case.outcome);
  if (std::chrono::steady_clock::now() - begin > kPatience / 2) {
    Complain("it hangs: " + ToText(plan));
  }
}

void World::Serve(ServerCall* call) {
  const auto& metadata = call->context()->client_metadata();
  const auto found = metadata.find(kPlanKey);
  if (found == metadata.end()) return Echo(call);
  const size_t number =
      std::stoul(std::string(found->second.data(), found->second.size()));
  Case& the_case = cases_.at(number);
  const Plan& plan = program_.calls[number];
  Outcome again;  // for repeated runs of a call that gRPC retries
  Outcome* outcome = &again;
  {
    std::lock_guard<std::mutex> lock(the_case.mu);
    if (++the_case.outcome.runs == 1) outcome = &the_case.outcome;
  }
  PlayServer(
      plan, call, &the_case.meeting, [this, &plan] { Settle(plan.channel); },
      outcome);
}

void World::Echo(ServerCall* call) {
  grpc::ByteBuffer message;
  if (call->Read(&message) && message.Valid()) {
    call->WriteAndFinish(message, grpc::Status::OK);
  } else {
    call->Finish(grpc::Status(grpc::StatusCode::ABORTED, "no message"));
  }
}

grpc::Status World::MakeEcho(const std::shared_ptr<grpc::Channel>& channel,
                             const Message& message) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  const auto call = NewCallbackCall(
      Kind::kUnary,
      ClientParts{channel, pump_.queue(),
                  MethodName(ServerApi::kCallback, Kind::kUnary), &context,
                  /*corked=*/false},
      /*generic=*/false);
  call->Write(ToBuffer(message), grpc::WriteOptions());
  grpc::ByteBuffer response;
  if (call->Read(&response) && !(DigestOf(response) == DigestOf(message))) {
    Complain("a bystander's message was changed");
  }
  return call->Finish();
}

// Makes an echo call. The echo arrives after everything that was sent earlier
// on the connection.
void World::Settle(size_t channel) {
  // Makes no call if streams are limited, because the echo might wait for the
  // call that waits for the echo.
  if (program_.settings.streams_at_once != kDefault) return;
  const auto at = ChannelAt(channel);
  // Makes the call only if the channel still exists. A server's thread may get
  // here late.
  if (at != nullptr) MakeEcho(at, Message());
}

void World::RunBystander(size_t channel) {
  Message message;
  for (int i = 0; i < kMostEchoes && !over_; ++i) {
    message.seed = i + 1;
    message.size = std::min<size_t>(LargestForAll(), i * 4999);
    const grpc::Status status = MakeEcho(ChannelAt(channel), message);
    if (status.ok() || program_.event == Event::kShutdown) continue;
    Complain("a bystander's call on channel " + std::to_string(channel) +
             " ended with " + std::to_string(status.error_code()) + " " +
             status.error_message());
  }
}

size_t World::LargestForAll() const {
  const Settings& settings = program_.settings;
  size_t largest = 100000;
  for (int limit : {settings.server_receives, settings.client_receives}) {
    if (limit >= 0) largest = std::min<size_t>(largest, limit);
  }
  return largest;
}

void World::Befall() {
  if (program_.event == Event::kNone) return;
  std::this_thread::sleep_for(std::chrono::microseconds(program_.event_us));
  switch (program_.event) {
    case Event::kNone:
      return;
    case Event::kPathLoss:
      while (!over_ && !HasMoved()) std::this_thread::yield();
      return e2e::BreakSharedMemory();
    case Event::kChannelGone: {
      auto another = NewChannel();
      std::lock_guard<std::mutex> lock(mu_);
      channels_[0].swap(another);
      return;
    }
    case Event::kShutdown:
      server_->Shutdown(std::chrono::system_clock::now() +
                        std::chrono::milliseconds(program_.event_us % 3));
  }
}

// Returns true if all connections use shared memory in both directions. With
// the event engine, BreakSharedMemory() may be called only then.
bool World::HasMoved() {
  if (!e2e::kIsEventEngine) return true;
  std::vector<PathReport> reports = DescribePaths(*server_);
  for (PathReport& report : DescribePaths(*ChannelAt(0))) {
    reports.push_back(std::move(report));
  }
  return reports.size() >= kConnections * 2 &&
         std::all_of(reports.begin(), reports.end(),
                     [](const PathReport& each) { return each.path == "shm"; });
}

void World::Complain(std::string what) {
  std::lock_guard<std::mutex> lock(mu_);
  complaints_.push_back(std::move(what));
}

}  // namespace penstock::oracle
