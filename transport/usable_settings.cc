#include "transport/usable_settings.h"

#include <sys/types.h>
#include <unistd.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "transport/base/log.h"
#include "transport/grpc/internal/mismatch.h"
#include "transport/grpc/polling/polling_engine.h"
#include "transport/memory/bytes.h"
#include "transport/pool.h"
#include "transport/settings/shm_arena.h"
#include "transport/settings/tcp_sockets.h"
#include "transport/start_monitoring.h"
#include "transport/stub_memory.h"

namespace penstock {
namespace {

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

// Logs bad settings of the process, once. Otherwise a bad setting would be
// logged only when a thread first waits.
void CheckProcessSettingsOnce() {
  static const bool good = [] {
    const absl::Status all[] = {
        ResolvePolling().status(),       ResolveShmHugePages().status(),
        ResolveShmArenaBytes().status(), ResolveTcpSockets().status(),
        ResolveStubMemory().status(),    ResolveMetrics().status(),
        ResolveStatusSocket().status(),  ResolveTrace().status(),
        ResolveRecord().status()};
    bool good = true;
    for (const absl::Status& status : all) {
      if (!status.ok()) base::LogError(status.message());
      good &= status.ok();
    }
    return good;
  }();
  (void)good;
}

bool MayShare(const Settings& settings) {
  return settings.Allows(FabricName(Fabric::kShm)) &&
         settings.shm_sharing == ShmSharing::kSameUid;
}

// Returns the id of the process that called this first.
pid_t StagingProcess() {
  static const pid_t process = getpid();
  return process;
}

// Allocates memory for staging. Returns null in the child of a fork, because a
// thread of the parent may have held the pool's lock.
std::shared_ptr<uint8_t> AllocateStaging(size_t bytes) {
  return getpid() == StagingProcess() ? AllocateFromPool(bytes) : nullptr;
}

// Makes stubs allocate from the pool if the channel or server may use shared
// memory. In other processes, stubs keep gRPC's allocator.
void PlaceStubMemory(const Settings& settings) {
  if (MayShare(settings)) {
    (void)StagingProcess();
    memory::SetStagingMemory(&AllocateStaging);
  }
  if (MayShare(settings) &&
      ResolveStubMemory().value_or(StubMemory::kHeap) == StubMemory::kPool) {
    ServeStubsFromPool();
  }
}

}  // namespace

absl::StatusOr<Settings> UsableSettings(const Options& options) {
  CheckProcessSettingsOnce();
  StartMonitoringOnce();
  if (const char* mismatch = core::GrpcMismatch()) {
    const absl::Status status = absl::FailedPreconditionError(mismatch);
    SayMismatchOnce(status);
    return status;
  }
  absl::StatusOr<Settings> settings = ResolveSettings(options);
  if (!settings.ok()) SayWhyNot(settings.status());
  return settings;
}

void PrepareForChannel(const Settings& settings) {
  SayLateOnce();
  PlaceStubMemory(settings);
}

void PrepareForServer(const Settings& settings) { PlaceStubMemory(settings); }

void SayWhyNot(const absl::Status& reason) {
  base::LogError(absl::StrCat("Penstock is not used: ", reason.message()));
}

}  // namespace penstock
