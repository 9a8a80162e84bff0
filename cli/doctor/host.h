// The facts about a machine that the probes examine.

#ifndef PENSTOCK_CLI_DOCTOR_HOST_H_
#define PENSTOCK_CLI_DOCTOR_HOST_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/doctor/files.h"
#include "cli/doctor/trial.h"
#include "transport/device/survey.h"
#include "transport/fabric/shm/huge_pages.h"
#include "transport/fabric/verbs/survey.h"
#include "transport/progress/spin_policy.h"
#include "transport/settings/settings.h"

namespace penstock::cli {

using Environment = std::map<std::string, std::string>;

// The machine, and the limits of this process. Each probe is a function of a
// Host. Tests set the fields themselves.
struct Host {
  Files files;
  Environment environment;

  // The settings that result from the environment.
  absl::StatusOr<Settings> settings = Settings();
  absl::StatusOr<progress::PollingMode> polling =
      progress::PollingMode::kAdaptive;
  absl::StatusOr<fabric::shm::HugePages> huge_pages =
      fabric::shm::HugePages::kTransparent;
  absl::StatusOr<uint64_t> arena_bytes = 0;  // 0: the default

  std::string grpc_built_for;  // "1.51.1"
  std::string grpc_loaded;
  std::string grpc_mismatch;  // empty if the right release is loaded

  // The folder of the library that `penstock run` preloads. Empty if there is
  // no such library.
  std::string preload_folder;

  uint64_t locked_memory = 0;  // verbs::LockedMemoryLimit()
  uint64_t open_files = 0;     // RLIMIT_NOFILE
  uint64_t open_files_hard = 0;
  int usable_cores = 1;
  int cores = 1;  // of the machine

  // The results of trying the fabrics that a connection would try. Empty if
  // connections of this process would not use Penstock.
  Trials trials;
  // The results of system calls that shm needs, to explain a failure of shm.
  absl::Status memfd;
  absl::Status unix_socket;

  absl::Status rdma_libraries;
  absl::StatusOr<std::vector<fabric::verbs::LocalAddress>> rdma =
      absl::NotFoundError("no RDMA device here");
  absl::StatusOr<device::Survey> cuda =
      absl::NotFoundError("no CUDA driver here");

  // Returns true if /sys lists an RDMA device, usable or not.
  bool HasRdmaDevice() const;
};

// Examines this machine. Blocks for one or two seconds if there are devices,
// and for three seconds if shm does not answer.
Host ThisHost(Environment environment);

// Returns the environment of this process.
Environment ProcessEnvironment();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_DOCTOR_HOST_H_
