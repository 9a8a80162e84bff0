// Settings: what options, environment and defaults come to.

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
// default. See Options for what a field means, and table.h for how it is
// written in the environment.
struct Settings {
  Policy policy = Policy::kPrefer;
  // Best first, not empty.
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

  // Whether the list of fabrics names `fabric`, so that a connection over it
  // satisfies Policy::kRequire.
  bool Allows(const std::string& fabric) const;
  // Whether a fabric may carry in the clear what the connection's security
  // would protect.
  bool MayExpose() const;
  // Describes the settings in one line. Equal settings give equal text, and
  // different ones different text.
  std::string ToString() const;
};

// Where stubs serialise large messages to: the heap, or the pool that shared
// memory carries messages from without a copy.
enum class StubMemory { kHeap, kPool };

// Whether the process answers those who ask for its status.
enum class StatusSocket { kOn, kOff };

// Returns the name in the environment: "shm" for Fabric::kShm.
std::string FabricName(Fabric fabric);

// Resolves the settings of a channel or server: options come before the
// environment, which comes before the defaults. Returns INVALID_ARGUMENT for a
// bad value, with its name and what is allowed.
absl::StatusOr<Settings> ResolveSettings(const Options& options);
// Whether the policy is kRequire. Other settings may be bad.
bool Requires(const Options& options);
// Resolves PENSTOCK_POLLING, which holds for the whole process.
absl::StatusOr<progress::PollingMode> ResolvePolling();
// Resolves PENSTOCK_SHM_HUGE_PAGES. It holds for the whole process, because its
// connections share the arena.
absl::StatusOr<fabric::shm::HugePages> ResolveShmHugePages();
// Resolves PENSTOCK_STUB_MEMORY. It holds for the whole process, because all
// its stubs take memory in one place.
absl::StatusOr<StubMemory> ResolveStubMemory();
// Resolve where metrics are served, as an HttpAddress, and to whom the status.
// Empty: not served.
absl::StatusOr<std::string> ResolveMetrics();
absl::StatusOr<StatusSocket> ResolveStatusSocket();
// Resolve to which files a trace and a recording are written. Empty: to none.
absl::StatusOr<std::string> ResolveTrace();
absl::StatusOr<std::string> ResolveRecord();

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_SETTINGS_H_
