#include "cli/doctor/host.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "grpcpp/grpcpp.h"
#include "grpcpp/version_info.h"
#include "transport/base/status_util.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/verbs/locked_memory.h"
#include "transport/grpc/internal/mismatch.h"
#include "transport/progress/usable_cores.h"
#include "transport/settings/shm_arena.h"
#include "transport/settings/verbs_device.h"

namespace penstock::cli {
namespace {

namespace verbs = fabric::verbs;

// Creates memory like shm.
absl::Status TryMemfd() {
  const base::UniqueFd fd(
      memfd_create("penstock-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd.get() < 0) return base::ErrnoStatus(errno, "memfd_create");
  if (ftruncate(fd.get(), getpagesize()) != 0) {
    return base::ErrnoStatus(errno, "ftruncate of a memfd");
  }
  void* const page = mmap(nullptr, getpagesize(), PROT_READ | PROT_WRITE,
                          MAP_SHARED, fd.get(), 0);
  if (page == MAP_FAILED) return base::ErrnoStatus(errno, "mmap of a memfd");
  munmap(page, getpagesize());
  return absl::OkStatus();
}

absl::Status TryAbstractSocket() {
  const base::UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (fd.get() < 0) return base::ErrnoStatus(errno, "make a UNIX socket");
  // Binds without a name, so that the kernel chooses an abstract one.
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
           sizeof address.sun_family) != 0) {
    return base::ErrnoStatus(errno, "bind an abstract UNIX socket");
  }
  return absl::OkStatus();
}

// Returns the device, port and GID index from the settings, as
// transport/paths/side_paths.cc derives them.
verbs::Options VerbsOptions(const absl::StatusOr<Settings>& settings) {
  verbs::Options options;
  if (!settings.ok()) return options;
  const VerbsDevice device =
      VerbsDevice::Parse(settings->verbs_device).value_or(VerbsDevice());
  options.device = device.name;
  options.port = device.port;
  options.gid_index = settings->verbs_gid_index;
  return options;
}

void ReadLimits(Host* host) {
  host->locked_memory = verbs::LockedMemoryLimit();
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    host->open_files = files.rlim_cur;
    host->open_files_hard = files.rlim_max;
  }
  host->usable_cores = progress::UsableCores();
  host->cores = static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

bool Host::HasRdmaDevice() const {
  return !files.List("/sys/class/infiniband").empty();
}

Host ThisHost(Environment environment) {
  Host host;
  host.environment = std::move(environment);
  host.settings = ResolveSettings({});
  host.polling = ResolvePolling();
  host.huge_pages = ResolveShmHugePages();
  host.arena_bytes = ResolveShmArenaBytes();
  host.grpc_built_for = GRPC_CPP_VERSION_STRING;
  host.grpc_loaded = grpc::Version();
  const char* const mismatch = core::GrpcMismatch();
  if (mismatch != nullptr) host.grpc_mismatch = mismatch;
  ReadLimits(&host);
  if (mismatch == nullptr && host.settings.ok() &&
      host.settings->policy != Policy::kOff) {
    host.trials = TryFabrics(*host.settings);
  }
  host.memfd = TryMemfd();
  host.unix_socket = TryAbstractSocket();
  host.rdma_libraries = verbs::OpenLibraries();
  host.rdma = verbs::SurveyAddresses(VerbsOptions(host.settings));
  host.cuda = device::LookAtDevices();
  return host;
}

Environment ProcessEnvironment() {
  Environment environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

}  // namespace penstock::cli
