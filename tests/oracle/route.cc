#include "tests/oracle/route.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>

#include "grpcpp/security/credentials.h"
#include "transport/fabric/shm/control.h"

namespace penstock::oracle {
namespace {

Options With(std::vector<Fabric> fabrics,
             ShmSharing sharing = ShmSharing::kSameUid) {
  Options options;
  options.policy = Policy::kPrefer;
  options.fabrics = std::move(fabrics);
  options.shm_sharing = sharing;
  return options;
}

// Returns the addresses of control pages that this process writes.
std::vector<uintptr_t> OwnControlPages() {
  std::vector<uintptr_t> pages;
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    uintptr_t begin = 0;
    if (line.find("memfd:penstock-control") == std::string::npos ||
        line.find(" rw-s ") == std::string::npos ||
        std::sscanf(line.c_str(), "%" SCNxPTR, &begin) != 1) {
      continue;
    }
    pages.push_back(begin);
  }
  return pages;
}

// Copies between memory of this process and `here`. Returns false if the memory
// is not mapped.
bool Copy(uintptr_t there, void* here, size_t size, bool write) {
  iovec local = {here, size};
  iovec remote = {reinterpret_cast<void*>(there), size};
  const auto copied =
      write ? process_vm_writev(getpid(), &local, 1, &remote, 1, 0)
            : process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  return copied == static_cast<ssize_t>(size);
}

}  // namespace

void Route::Enable(grpc::ServerBuilder* builder) const {
  if (!stock) penstock::Enable(builder, options);
}

std::shared_ptr<grpc::ChannelCredentials> Route::Credentials() const {
  auto credentials = grpc::InsecureChannelCredentials();
  return stock ? credentials : penstock::Credentials(credentials, options);
}

const Route* FindRoute(const std::string& name) {
  static const std::vector<Route> routes = {
      {"stock", true, "http2", {}},
      {"shm", false, "shm", With({Fabric::kShm, Fabric::kTcp})},
      {"shm-copy", false, "shm",
       With({Fabric::kShm, Fabric::kTcp}, ShmSharing::kCopy)},
      {"tcp", false, "tcp", With({Fabric::kTcp})},
      {"verbs", false, "verbs", With({Fabric::kVerbs, Fabric::kTcp})},
  };
  for (const Route& route : routes) {
    if (route.name == name) return &route;
  }
  return nullptr;
}

void BreakSharedMemory() {
  for (uintptr_t page : OwnControlPages()) {
    uint32_t head[2] = {};  // magic and version
    // Copies through the kernel instead of by plain accesses, because the page
    // may have been unmapped or replaced since the search.
    if (!Copy(page, head, sizeof head, /*write=*/false) ||
        head[1] != fabric::shm::kLayoutVersion) {
      continue;
    }
    uint32_t closed = 1;
    Copy(page + offsetof(fabric::shm::ControlPage, closed), &closed,
         sizeof closed, /*write=*/true);
  }
}

}  // namespace penstock::oracle
