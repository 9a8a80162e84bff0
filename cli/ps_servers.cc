#include "cli/ps_servers.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "cli/connect_failure.h"
#include "cli/interrupt.h"
#include "cli/target.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/client_interceptor.h"
#include "ps/access/send_secret.h"
#include "ps/membership/membership.h"
#include "ps/membership/target.h"
#include "ps/wire/ps.grpc.pb.h"
#include "ps/wire/shard_key.h"
#include "transport/base/printable.h"

namespace penstock::cli {
namespace {

constexpr size_t kMaxTextBytes = 400;

// Returns a sentence about the server that explains a failed call.
std::string Explain(const std::string& name, const grpc::Status& status,
                    const ClientOptions& client) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNIMPLEMENTED:
      return absl::StrCat(name,
                          " is a gRPC server, and no parameter server; is it "
                          "the right port?");
    case grpc::StatusCode::UNAUTHENTICATED:
      return absl::StrCat(name, " refuses to answer: ", status.error_message(),
                          " (--secret=FILE)");
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return ExplainConnectFailure(name, status, client.timeout(),
                                   client.WithTls());
    default:
      return absl::StrCat(name, " refuses to answer: ", status.error_message());
  }
}

// Returns the deadline of a call that begins now. Uses a monotonic clock,
// because the system's clock may be set.
gpr_timespec DeadlineAfter(absl::Duration timeout) {
  return gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_nanos(absl::ToInt64Nanoseconds(timeout), GPR_TIMESPAN));
}

// A server to query about a shard. An empty shard means the server's own shard.
struct Question {
  std::string name;
  std::shared_ptr<grpc::Channel> channel;
  std::string shard;
};

// A call to one server. Must not move while in progress.
struct Call {
  std::unique_ptr<ps::v1::ParameterServer::Stub> stub;
  grpc::ClientContext context;
  ps::v1::DescribeRequest request;
  ps::v1::ServerReport reply;
  grpc::Status status;
};

std::vector<ServerStatus> AskAll(const std::vector<Question>& questions,
                                 const ClientOptions& client) {
  std::vector<Call> calls(questions.size());
  absl::BlockingCounter under_way(static_cast<int>(calls.size()));
  for (size_t i = 0; i < calls.size(); ++i) {
    Call& call = calls[i];
    call.stub = ps::v1::ParameterServer::NewStub(questions[i].channel);
    call.context.set_deadline(DeadlineAfter(client.timeout()));
    if (!questions[i].shard.empty()) {
      call.context.AddMetadata(ps::kShardKey, questions[i].shard);
    }
    call.stub->async()->Describe(&call.context, &call.request, &call.reply,
                                 [&call, &under_way](grpc::Status status) {
                                   call.status = std::move(status);
                                   under_way.DecrementCount();
                                 });
  }
  under_way.Wait();
  std::vector<ServerStatus> servers;
  servers.reserve(calls.size());
  for (size_t i = 0; i < calls.size(); ++i) {
    ServerStatus server = {questions[i].name, absl::OkStatus(), {}};
    if (calls[i].status.ok()) {
      server.report.Swap(&calls[i].reply);
    } else {
      server.status = absl::UnavailableError(base::Printable(
          Explain(questions[i].name, calls[i].status, client), kMaxTextBytes));
    }
    servers.push_back(std::move(server));
  }
  return servers;
}

// Returns a query for the primary of each shard. Omits a primary that is not
// among the servers.
std::vector<Question> PrimariesOf(const ps::v1::GetViewReply& view,
                                  const PsServers::Channels& channels) {
  std::vector<Question> questions;
  const auto& names = view.servers();
  for (int shard = 0; shard < view.view().shards().size(); ++shard) {
    const std::string& primary = view.view().shards(shard).primary().server();
    const auto at = static_cast<size_t>(
        std::find(names.begin(), names.end(), primary) - names.begin());
    if (at >= channels.size()) continue;
    questions.push_back({absl::StrCat("shard ", shard, " at ", primary),
                         channels[at], absl::StrCat(shard)});
  }
  return questions;
}

}  // namespace

void PsServers::Declare(CLI::App* app) {
  app->add_option("servers", names_,
                  "the parameter servers, in gRPC's notation: ps0:2222; or "
                  "etcd://HOST:PORT/PREFIX, where they are registered")
      ->type_name("SERVER...")
      ->required();
  DeclareOptions(app);
}

void PsServers::DeclareTraining(CLI::App* app) {
  app->add_option("training", training_,
                  "etcd://HOST:PORT/PREFIX, where the servers are registered")
      ->type_name("TRAINING")
      ->required();
  DeclareOptions(app);
}

void PsServers::DeclareOptions(CLI::App* app) {
  client_.Declare(app);
  app->add_option("--secret", secret_file_, "the file with the servers' secret")
      ->type_name("FILE");
}

absl::Status PsServers::Check() {
  if (!training_.empty()) {
    absl::Status status = ps::membership::ParseTarget(training_).status();
    if (!status.ok()) return status;
    names_ = {training_};
  }
  for (const std::string& name : names_) {
    absl::Status status = ps::membership::IsTarget(name)
                              ? ps::membership::ParseTarget(name).status()
                              : CheckTarget(name);
    if (!status.ok()) return status;
  }
  return client_.Check();
}

absl::StatusOr<PsServers::Channels> PsServers::Open() {
  auto found =
      ps::membership::FindServers(names_, client_.timeout(), Interrupted);
  if (!found.ok()) return found.status();
  names_ = *std::move(found);
  const auto security = client_.Security();
  if (!security.ok()) return security.status();
  const auto secret = ps::ReadSecretToSend(secret_file_);
  if (!secret.ok()) return secret.status();
  // Makes a separate connection for each name, even if two names denote the
  // same server.
  const grpc::ChannelArguments arguments = client_.Arguments();
  Channels channels;
  channels.reserve(names_.size());
  for (const std::string& name : names_) {
    channels.push_back(grpc::experimental::CreateCustomChannelWithInterceptors(
        name, *security, arguments, ps::SendSecret(*secret)));
  }
  return channels;
}

std::vector<ServerStatus> PsServers::Describe(const Channels& channels) const {
  std::vector<Question> questions;
  for (size_t i = 0; i < channels.size(); ++i) {
    questions.push_back({names_[i], channels[i], ""});
  }
  std::vector<ServerStatus> servers = AskAll(questions, client_);
  const ps::v1::GetViewReply* const newest = NewestView(servers);
  if (newest == nullptr) return servers;
  std::vector<ServerStatus> shards =
      AskAll(PrimariesOf(*newest, channels), client_);
  for (ServerStatus& server : servers) {
    if (!server.status.ok()) shards.push_back(std::move(server));
  }
  return shards;
}

}  // namespace penstock::cli
