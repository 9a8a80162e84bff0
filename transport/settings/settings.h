// Settings, resolved from options, environment and defaults.

#ifndef PENSTOCK_TRANSPORT_SETTINGS_SETTINGS_H_
#define PENSTOCK_TRANSPORT_SETTINGS_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "penstock/options.h"
#include "transport/fabric/shm/huge_pages.h"
#include "transport/progress/spin_policy.h"

namespace penstock {

// Settings of one channel or server. The initial value of a field is its
// default. Options explains each field, and table.h gives its form in the
// environment.
struct Settings {
  Policy policy = Policy::kPrefer;
  // The fabrics to try, in order of preference. Not empty.
  std::vector<Fabric> fabrics = {Fabric::kShm, Fabric::kVerbs, Fabric::kTcp};
  ShmSharing shm_sharing = ShmSharing::kSameUid;
  std::string shm_directory;  // absolute; empty: abstract sockets
  std::string verbs_device;   // a VerbsDevice; empty: any
  int verbs_gid_index = -1;
  int verbs_traffic_class = -1;
  int verbs_cache_mib = 1024;
  DataProtection data_protection = DataProtection::kRequired;
  int eager_max_bytes = 0;   // 0: as measured
  int chunk_bytes = 0;       // 0: as measured
  int heartbeat_ms = 20000;  // 0: none

  // Returns true if the list of fabrics contains `fabric`. A connection over
  // such a fabric satisfies Policy::kRequire.
  bool Allows(const std::string& fabric) const;
  // Returns true if a connection that promises privacy may use a fabric without
  // encryption.
  bool MayExpose() const;
  // Describes the settings in one line. Two texts are equal if and only if the
  // settings are equal.
  std::string ToString() const;
};

// The memory in which stubs allocate large messages: the heap or the pool.
// Shared memory carries messages of the pool without a copy.
enum class StubMemory { kHeap, kPool };

// Turns the process's answers to requests for its status on or off.
enum class StatusSocket { kOn, kOff };

// Returns the fabric's name in the environment: "shm" for Fabric::kShm.
std::string FabricName(Fabric fabric);

// Resolves the settings of a channel or server. Options override the
// environment, which overrides the defaults. For a bad value, returns
// INVALID_ARGUMENT with the name of the setting and the allowed values.
absl::StatusOr<Settings> ResolveSettings(const Options& options);
// Returns true if the policy is kRequire, even if other settings are bad.
bool Requires(const Options& options);
// Resolves PENSTOCK_POLLING, which holds for the whole process.
absl::StatusOr<progress::PollingMode> ResolvePolling();
// Resolves PENSTOCK_SHM_HUGE_PAGES. The value applies to the whole process,
// because all connections share the arena.
absl::StatusOr<fabric::shm::HugePages> ResolveShmHugePages();
// Resolves PENSTOCK_STUB_MEMORY. The value applies to the whole process,
// because all stubs share one allocator.
absl::StatusOr<StubMemory> ResolveStubMemory();
// Resolve two settings of monitoring: the HttpAddress at which metrics are
// served (empty: not served), and the switch of the status socket.
absl::StatusOr<std::string> ResolveMetrics();
absl::StatusOr<StatusSocket> ResolveStatusSocket();
// Resolve the files of the trace and of the recording. Empty: none.
absl::StatusOr<std::string> ResolveTrace();
absl::StatusOr<std::string> ResolveRecord();

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_SETTINGS_H_
