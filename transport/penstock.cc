#include "penstock/penstock.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/grpc/describe.h"
#include "transport/grpc/handshake/credentials.h"
#include "transport/grpc/handshake/refusing_credentials.h"
#include "transport/grpc/handshake/server_setup.h"
#include "transport/grpc/internal/mismatch.h"
#include "transport/metrics/connection_info.h"
#include "transport/settings/settings.h"
#include "transport/usable_settings.h"

namespace penstock {
namespace {

// Makes BuildAndStart() fail, by adding a port that cannot be bound. gRPC
// offers no other way.
void Refuse(grpc::ServerBuilder* builder) {
  builder->AddListeningPort(
      "unix:/dev/null/penstock-is-required-but-not-usable",
      grpc::InsecureServerCredentials());
}

}  // namespace

void Enable(grpc::ServerBuilder* builder, const Options& options) {
  absl::StatusOr<Settings> settings = UsableSettings(options);
  absl::Status status = settings.status();
  if (status.ok()) {
    if (settings->policy == Policy::kOff) return;
    PrepareForServer(*settings);
    status = core::EnableServer(builder, *settings);
    if (!status.ok()) SayWhyNot(status);
  }
  if (!status.ok() && Requires(options)) Refuse(builder);
}

std::shared_ptr<grpc::ChannelCredentials> Credentials(
    std::shared_ptr<grpc::ChannelCredentials> credentials,
    const Options& options) {
  absl::StatusOr<Settings> settings = UsableSettings(options);
  if (!settings.ok()) {
    if (!Requires(options)) return credentials;
    return core::RefusingCredentials(absl::StrCat(
        "Penstock is required but not used: ", settings.status().message()));
  }
  if (settings->policy == Policy::kOff) return credentials;
  PrepareForChannel(*settings);
  return core::WrapCredentials(credentials, *settings);
}

namespace {

// Returns a report which says that connections are unknown, because of
// `mismatch`. Penstock finds connections through gRPC's internals, which may
// differ in another release.
PathReport MismatchReport(const char* mismatch) {
  PathReport report;
  report.path = "http2";
  report.reason = mismatch;
  return report;
}

std::vector<PathReport> ToReports(
    std::vector<metrics::ConnectionInfo> connections) {
  std::vector<PathReport> reports;
  for (metrics::ConnectionInfo& connection : connections) {
    PathReport report;
    report.peer = std::move(connection.peer);
    report.path = std::move(connection.path);
    report.detail = std::move(connection.detail);
    report.reason = std::move(connection.reason);
    report.eager_max_bytes = connection.eager_max_bytes;
    report.chunk_bytes = connection.chunk_bytes;
    report.messages_sent = connection.messages_sent;
    report.messages_received = connection.messages_received;
    report.bytes_sent = connection.bytes_sent;
    report.bytes_received = connection.bytes_received;
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace

std::vector<PathReport> DescribePaths(grpc::Channel& channel) {
  if (const char* mismatch = core::GrpcMismatch()) {
    return {MismatchReport(mismatch)};
  }
  return ToReports(core::DescribeConnections(&channel));
}

std::vector<PathReport> DescribePaths(grpc::Server& server) {
  if (const char* mismatch = core::GrpcMismatch()) {
    return {MismatchReport(mismatch)};
  }
  return ToReports(core::DescribeConnections(&server));
}

}  // namespace penstock
