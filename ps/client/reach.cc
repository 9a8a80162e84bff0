#include "ps/client/reach.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "grpcpp/client_context.h"
#include "ps/wire/ps.grpc.pb.h"
#include "tensor_service/calls.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

constexpr absl::Duration kTryEvery = absl::Milliseconds(250);
// Limits the wait for one answer if another server may know more. Needed
// because a stopped process keeps its connections open.
constexpr absl::Duration kPatience = absl::Seconds(2);

// A text in gRPC's message that shows why the TLS handshake fails at this side,
// permanently. gRPC gives the reason only in that text.
struct Refusal {
  const char* said;
  const char* means;  // cause and remedy
};
constexpr Refusal kBrokenOff[] = {
    {"wrong version number",
     "the server does not use TLS: give it --ca, --cert and --key, or leave "
     "them out here"},
    {"certificate verify failed",
     "the server's certificate is not one that --ca vouches for, or has "
     "expired: --ca names who signed it"},
    {"eer name",
     "the server's certificate is for another name than the one it is "
     "addressed by: use the one in it"},
    {"Hostname Verification",
     "the server's certificate is for another name than the one it is "
     "addressed by: use the one in it"},
    {"Ssl handshake failed",
     "the two sides do not agree: --ca, --cert and --key have to be of one "
     "authority on both"},
};
constexpr char kCloses[] =
    "it closes each connection: if it uses TLS, it wants --ca, --cert and "
    "--key here, too, and a certificate that its own --ca vouches for; its log "
    "says why it closes";

const char* WhyBrokenOff(absl::string_view message) {
  for (const Refusal& refusal : kBrokenOff) {
    if (absl::StrContains(message, refusal.said)) return refusal.means;
  }
  return nullptr;
}

// Returns true if the error means that the peer closed the connection. A server
// does so if it refuses this side's certificate: with TLS 1.3, the client's
// handshake has already succeeded by then.
bool IsClosed(absl::string_view message) {
  for (const char* said :
       {"Socket closed", "onnection reset", "ndpoint closing"}) {
    if (absl::StrContains(message, said)) return true;
  }
  return false;
}

// Returns true if the status comes from the server. gRPC itself returns
// UNAVAILABLE for a missing connection, and DEADLINE_EXCEEDED at the deadline,
// which may differ slightly from our clock.
bool IsAnswer(const grpc::Status& status) {
  return status.error_code() != grpc::StatusCode::UNAVAILABLE &&
         status.error_code() != grpc::StatusCode::DEADLINE_EXCEEDED;
}

// Requests the view from a server. Stores it in `view` if shards are
// replicated.
grpc::Status Try(const std::shared_ptr<grpc::Channel>& server,
                 absl::Duration limit, v1::GetViewReply* view) {
  grpc::ClientContext context;  // fails without a connection
  context.set_deadline(tensor::DeadlineAfter(limit));
  v1::ServerReport report;
  grpc::Status status = v1::ParameterServer::NewStub(server)->Describe(
      &context, v1::DescribeRequest(), &report);
  if (status.ok() && report.view().replicas() > 0)
    view->Swap(report.mutable_view());
  return status;
}

// Returns true if `view` names a server for each shard, so that no other server
// has to answer.
bool IsEnough(const v1::GetViewReply& view) {
  return view.has_view() && view.lost_shards().empty();
}

// Makes gRPC reconnect at the next call. Otherwise gRPC's backoff grows to two
// minutes, during which calls return the error of the last attempt.
void TryAgainSoon(const std::shared_ptr<grpc::Channel>& server) {
  grpc::experimental::ChannelResetConnectionBackoff(server.get());
}

// Waits for server `at`. While this server does not answer, requests the view
// from the other servers in turn.
absl::Status AwaitServer(
    const std::vector<std::shared_ptr<grpc::Channel>>& servers, size_t at,
    absl::Time limit, v1::GetViewReply* view) {
  const std::shared_ptr<grpc::Channel>& server = servers[at];
  const std::string name = absl::StrCat("server ", at);
  size_t other = at;
  absl::Time not_closed = base::SteadyNow();  // last time without IsClosed()
  std::string last = "it has not answered";   // gRPC's last message
  while (true) {
    const absl::Duration left = limit - base::SteadyNow();
    const grpc::Status status = Try(
        server, servers.size() == 1 ? left : std::min(left, kPatience), view);
    if (IsAnswer(status)) return absl::OkStatus();
    other = (other + 1) % servers.size();
    if (other != at) {
      Try(servers[other], std::min(kTryEvery, limit - base::SteadyNow()), view);
      if (IsEnough(*view)) return absl::OkStatus();
    }
    const absl::Time now = base::SteadyNow();
    const std::string& said = status.error_message();
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) last = said;
    if (const char* const why = WhyBrokenOff(said)) {
      return absl::UnauthenticatedError(
          absl::StrCat(name, ": no TLS: ", why, " (", said, ")"));
    }
    if (!IsClosed(said)) not_closed = now;
    if (now - not_closed >= kClosedLimit) {
      return absl::UnavailableError(
          absl::StrCat(name, ": ", kCloses, " (", said, ")"));
    }
    if (now >= limit) {
      return absl::DeadlineExceededError(
          absl::StrCat(name, ": it was not reached in time (", last, ")"));
    }
    // Wait in gRPC instead of sleeping: gRPC connects only while a thread waits
    // in gRPC.
    const absl::Time next = std::min(now + kTryEvery, limit);
    server->WaitForStateChange(server->GetState(/*try_to_connect=*/true),
                               tensor::DeadlineAfter(next - now));
    TryAgainSoon(server);
  }
}

}  // namespace

absl::Status AwaitServers(
    const std::vector<std::shared_ptr<grpc::Channel>>& servers,
    absl::Duration timeout, v1::GetViewReply* view) {
  v1::GetViewReply ignored;
  if (view == nullptr) view = &ignored;
  const absl::Time limit = base::SteadyNow() + timeout;
  for (size_t i = 0; i < servers.size() && !IsEnough(*view); ++i) {
    absl::Status status = AwaitServer(servers, i, limit, view);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace penstock::ps
