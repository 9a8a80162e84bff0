#include "tests/e2e/shm_loss.h"

#include <dirent.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "transport/fabric/shm/control.h"

namespace penstock::e2e {
namespace {

std::vector<int> OpenDescriptors() {
  std::vector<int> descriptors;
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    descriptors.push_back(std::atoi(entry->d_name));
  }
  closedir(folder);
  return descriptors;
}

// Returns true for a set-up socket of shm. These are the only packet sockets
// here. To Penstock, their end is the death of the shared memory peer.
bool IsShmSocket(int descriptor) {
  int type = 0;
  socklen_t size = sizeof type;
  sockaddr_storage peer;
  socklen_t peer_size = sizeof peer;
  return getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
         type == SOCK_SEQPACKET &&
         getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer),
                     &peer_size) == 0;
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

int TearDownSharedMemory() {
  int count = 0;
  for (int descriptor : OpenDescriptors()) {
    if (!IsShmSocket(descriptor)) continue;
    shutdown(descriptor, SHUT_RDWR);
    ++count;
  }
  return count;
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

}  // namespace penstock::e2e
