// Options, environment and defaults, resolved into one answer.

#ifndef PENSTOCK_TRANSPORT_SETTINGS_SETTINGS_H_
#define PENSTOCK_TRANSPORT_SETTINGS_SETTINGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/fabric/shm/huge_pages.h"
#include "transport/progress/spin_policy.h"
#include "transport/settings/options.h"

namespace penstock {

// A field's initial value is the setting's default. table.h says how each is
// named, written and resolved.
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
  int eager_max_bytes = 0;  // 0: as measured
  int chunk_bytes = 0;      // 0: as measured

  // Whether a connection carried by `fabric` satisfies kRequire.
  bool Allows(const std::string& fabric) const;
  // Whether a fabric may carry what the connection's security protects, in the
  // clear.
  bool MayExpose() const;
  // Equal settings give equal text, different ones different text.
  std::string ToString() const;
};

// "shm" for Fabric::kShm and so on, as the environment has them.
std::string FabricName(Fabric fabric);

// INVALID_ARGUMENT names the variable or field, its value, and what is allowed.
absl::StatusOr<Settings> ResolveSettings(const Options& options);
// Whether the policy is kRequire, be the other settings good or not.
bool Requires(const Options& options);
// PENSTOCK_POLLING, for the whole process.
absl::StatusOr<progress::PollingMode> ResolvePolling();
// PENSTOCK_SHM_HUGE_PAGES, for the whole process, whose connections share what
// payloads lie in.
absl::StatusOr<fabric::shm::HugePages> ResolveShmHugePages();

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_SETTINGS_H_
