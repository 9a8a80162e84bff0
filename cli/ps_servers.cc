#include "cli/ps_servers.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "cli/target.h"
#include "cli/text/units.h"
#include "cli/what_listens.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/client_interceptor.h"
#include "ps/access/send_secret.h"
#include "ps/wire/ps.grpc.pb.h"
#include "transport/base/printable.h"

namespace penstock::cli {
namespace {

constexpr size_t kMaxTextBytes = 400;

struct Meaning {
  const char* part;  // of gRPC's text
  const char* means;
};

// Failures where nobody is there to be asked.
constexpr Meaning kUnreachable[] = {
    {"onnection refused",
     "nothing listens there; is the server running, on that port and address?"},
    {"DNS resolution failed", "the name is unknown; check its spelling"},
    {"Domain name not found", "the name is unknown; check its spelling"},
    {"No such file", "there is no such socket; check the path"},
};

constexpr Meaning kMeanings[] = {
    {"WRONG_VERSION_NUMBER",
     "it does not speak TLS; leave out --ca, --cert and --key"},
    {"wrong version number",
     "it does not speak TLS; leave out --ca, --cert and --key"},
    {"CERTIFICATE_VERIFY_FAILED",
     "its certificate is not signed by the authority of --ca"},
    {"certificate verify failed",
     "its certificate is not signed by the authority of --ca"},
    {"eer name", "its certificate is for another name than this"},
    {"Socket closed",
     "it closed the connection; if it speaks TLS: --ca, --cert and --key"},
    {"onnection reset",
     "it closed the connection; if it speaks TLS: --ca, --cert and --key"},
    {"ndpoint closing",
     "it closed the connection; if it speaks TLS: --ca, --cert and --key"}};

// The time limit for whatever listens there to say what it is.
constexpr absl::Duration kLookLimit = absl::Seconds(1);

template <size_t N>
const char* Find(const Meaning (&meanings)[N], absl::string_view text) {
  for (const Meaning& each : meanings) {
    if (absl::StrContains(text, each.part)) return each.means;
  }
  return nullptr;
}

// Explains a failure where the server gave no answer of its own.
std::string ExplainSilence(const std::string& name, const grpc::Status& status,
                           absl::Duration timeout, bool with_tls) {
  const std::string& text = status.error_message();
  const std::string begin = "cannot be reached: ";
  const char* means = Find(kUnreachable, text);
  if (means != nullptr) return absl::StrCat(begin, means);
  const std::string listens =
      WhatListensAt(name, std::min(timeout, kLookLimit), with_tls);
  if (!listens.empty()) return absl::StrCat(begin, listens);
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    return absl::StrCat("did not answer within ", absl::FormatDuration(timeout),
                        "; does a firewall let it through?");
  }
  means = Find(kMeanings, text);
  return absl::StrCat(begin, means == nullptr ? text : means);
}

std::string Explain(const std::string& name, const grpc::Status& status,
                    absl::Duration timeout, bool with_tls) {
  switch (status.error_code()) {
    case grpc::StatusCode::UNIMPLEMENTED:
      return "is a gRPC server, and no parameter server; is it the right port?";
    case grpc::StatusCode::UNAUTHENTICATED:
      return absl::StrCat("refuses to answer: ", status.error_message(),
                          " (--secret=FILE)");
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return ExplainSilence(name, status, timeout, with_tls);
    default:
      return absl::StrCat("refuses to answer: ", status.error_message());
  }
}

// By the steady clock: the system's may be set.
gpr_timespec DeadlineAfter(absl::Duration timeout) {
  return gpr_time_add(
      gpr_now(GPR_CLOCK_MONOTONIC),
      gpr_time_from_nanos(absl::ToInt64Nanoseconds(timeout), GPR_TIMESPAN));
}

// A call to one server. Does not move while it is under way.
struct Call {
  std::unique_ptr<ps::v1::ParameterServer::Stub> stub;
  grpc::ClientContext context;
  ps::v1::DescribeRequest request;
  ps::v1::ServerReport reply;
  grpc::Status status;
};

}  // namespace

void PsServers::Declare(CLI::App* app) {
  app->add_option("servers", names_,
                  "the parameter servers, as gRPC names them: ps0:2222")
      ->type_name("SERVER...")
      ->required();
  app->add_option("-W,--timeout", timeout_text_,
                  "how long to wait for the answers (default 5s)")
      ->type_name("TIME");
  app->add_option("--ca", files_.ca,
                  "use TLS, and trust whom this PEM file names")
      ->type_name("FILE");
  app->add_option("--cert", files_.cert, "show this certificate (PEM)")
      ->type_name("FILE");
  app->add_option("--key", files_.key, "its private key (PEM)")
      ->type_name("FILE");
  app->add_option("--secret", secret_file_,
                  "a file with the secret that the servers ask for")
      ->type_name("FILE");
}

absl::Status PsServers::Check() {
  for (const std::string& name : names_) {
    absl::Status status = CheckTarget(name);
    if (!status.ok()) return status;
  }
  const absl::StatusOr<absl::Duration> timeout = ParseDuration(timeout_text_);
  if (!timeout.ok() || *timeout == absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--timeout: ", timeout.ok() ? "must be above 0"
                                                 : timeout.status().message()));
  }
  timeout_ = *timeout;
  return files_.Check();
}

absl::StatusOr<PsServers::Channels> PsServers::Open() const {
  const auto security = ps::ClientSecurity(files_);
  if (!security.ok()) return security.status();
  const auto secret = ps::ReadSecretToSend(secret_file_);
  if (!secret.ok()) return secret.status();
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);  // thousands of tables
  // Compressed, a few bytes of a stranger's could be gigabytes.
  arguments.SetInt("penstock.max_decompressed_bytes", 64 << 20);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Two names of one server stay two.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  Channels channels;
  channels.reserve(names_.size());
  for (const std::string& name : names_) {
    channels.push_back(grpc::experimental::CreateCustomChannelWithInterceptors(
        name, *security, arguments, ps::SendSecret(*secret)));
  }
  return channels;
}

std::vector<ServerStatus> PsServers::Describe(const Channels& channels) const {
  std::vector<Call> calls(names_.size());
  absl::BlockingCounter under_way(static_cast<int>(calls.size()));
  for (size_t i = 0; i < calls.size(); ++i) {
    Call& call = calls[i];
    call.stub = ps::v1::ParameterServer::NewStub(channels[i]);
    call.context.set_deadline(DeadlineAfter(timeout_));
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
    ServerStatus server = {names_[i], absl::OkStatus(), {}};
    if (calls[i].status.ok()) {
      server.report.Swap(&calls[i].reply);
    } else {
      server.status = absl::UnavailableError(base::Printable(
          absl::StrCat(
              names_[i], " ",
              Explain(names_[i], calls[i].status, timeout_, files_.given())),
          kMaxTextBytes));
    }
    servers.push_back(std::move(server));
  }
  return servers;
}

}  // namespace penstock::cli
