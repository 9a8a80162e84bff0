#include "penstock/penstock.h"

#include <ostream>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "transport/base/log.h"
#include "transport/grpc/credentials.h"
#include "transport/grpc/describe.h"
#include "transport/grpc/mismatch.h"
#include "transport/grpc/polling_engine.h"
#include "transport/grpc/refusing_credentials.h"
#include "transport/grpc/server_setup.h"
#include "transport/memory/stable_memory.h"
#include "transport/settings/settings.h"
#include "transport/stub_memory.h"

namespace penstock {
namespace {

void SayWhyNot(const absl::Status& reason) {
  base::LogError(absl::StrCat("Penstock is not used: ", reason.message()));
}

// Logs once for the process: the reason is the same for all channels and
// servers.
void SayMismatchOnce(const absl::Status& reason) {
  static const bool said = (SayWhyNot(reason), true);
  (void)said;
}

// Warns once if threads that wait in gRPC cannot poll. Clients still work.
void SayLateOnce() {
  static const bool early = [] {
    if (!core::PollingIsWrapped()) {
      base::LogWarning(
          "the Penstock library was loaded after gRPC had been used: threads "
          "that wait in gRPC cannot poll, so small messages take longer; link "
          "it into the program, or load it first");
    }
    return core::PollingIsWrapped();
  }();
  (void)early;
}

// Logs bad settings of the process, once. Without this they would be read, and
// logged, only when a thread first waits.
void CheckProcessSettingsOnce() {
  static const bool good = [] {
    const absl::Status all[] = {ResolvePolling().status(),
                                ResolveShmHugePages().status(),
                                ResolveStubMemory().status()};
    bool good = true;
    for (const absl::Status& status : all) {
      if (!status.ok()) base::LogError(status.message());
      good &= status.ok();
    }
    return good;
  }();
  (void)good;
}

// Returns the settings, or logs and returns why Penstock cannot be used.
// Policy::kOff is not such a reason: the caller checks for it, and logs
// nothing.
absl::StatusOr<Settings> UsableSettings(const Options& options) {
  CheckProcessSettingsOnce();
  if (const char* mismatch = core::GrpcMismatch()) {
    const absl::Status status = absl::FailedPreconditionError(mismatch);
    SayMismatchOnce(status);
    return status;
  }
  absl::StatusOr<Settings> settings = ResolveSettings(options);
  if (!settings.ok()) SayWhyNot(settings.status());
  return settings;
}

// For a process with a channel or server that may use shared memory. In any
// other, stubs stay as they are.
void PlaceStubMemory(const Settings& settings) {
  if (settings.Allows(FabricName(Fabric::kShm)) &&
      settings.shm_sharing == ShmSharing::kSameUid &&
      ResolveStubMemory().value_or(StubMemory::kHeap) == StubMemory::kPool) {
    ServeStubsFromPool();
  }
}

// Makes BuildAndStart() fail. The only way to do that is a port that cannot be
// bound.
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
    PlaceStubMemory(*settings);
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
  SayLateOnce();
  PlaceStubMemory(*settings);
  return core::WrapCredentials(credentials, *settings);
}

std::string PathReport::ToString() const {
  std::string text = path;
  if (!detail.empty()) absl::StrAppend(&text, " (", detail, ")");
  if (!reason.empty()) absl::StrAppend(&text, ": ", reason);
  return text;
}

std::ostream& operator<<(std::ostream& out, const PathReport& report) {
  return out << report.ToString();
}

namespace {

class DeclaredMemory : public RegisteredMemory {
 public:
  explicit DeclaredMemory(std::unique_ptr<memory::StableMemory> promise)
      : promise_(std::move(promise)) {}

 private:
  const std::unique_ptr<memory::StableMemory> promise_;
};

}  // namespace

std::unique_ptr<RegisteredMemory> RegisterMemory(const void* data,
                                                 size_t size) {
  absl::StatusOr<std::unique_ptr<memory::StableMemory>> promise =
      memory::StableMemory::Declare(data, size);
  if (!promise.ok()) return nullptr;
  return absl::make_unique<DeclaredMemory>(*std::move(promise));
}

std::vector<PathReport> DescribePaths(grpc::Channel& channel) {
  std::vector<PathReport> reports;
  if (const char* mismatch = core::GrpcMismatch()) {
    // Connections are found through gRPC's internals, which may differ in
    // another release.
    PathReport report;
    report.path = "http2";
    report.reason = mismatch;
    reports.push_back(std::move(report));
    return reports;
  }
  for (core::ConnectionDescription& connection :
       core::DescribeConnections(&channel)) {
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

}  // namespace penstock
