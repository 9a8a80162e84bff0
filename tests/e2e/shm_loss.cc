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

// Returns true for a set-up socket of shm. This process has no other packet
// sockets. When such a socket ends, Penstock concludes that the peer has died.
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

// Returns true if `page` is still mapped. Reads through the kernel instead of
// by a plain access, because the page may be gone.
bool IsControlPage(uintptr_t page) {
  uint32_t head[2] = {};  // magic and version
  iovec local = {head, sizeof head};
  iovec remote = {reinterpret_cast<void*>(page), sizeof head};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) ==
             static_cast<ssize_t>(sizeof head) &&
         head[1] == fabric::shm::kLayoutVersion;
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

// Writes all pages in one call, because a lost path may soon be replaced by a
// path whose page has the same address. A page that no longer exists ends the
// call. The next call continues after that page.
void BreakSharedMemory() {
  uint32_t closed = 1;
  std::vector<iovec> local, remote;
  for (uintptr_t page : OwnControlPages()) {
    if (!IsControlPage(page)) continue;
    local.push_back({&closed, sizeof closed});
    const uintptr_t there = page + offsetof(fabric::shm::ControlPage, closed);
    remote.push_back({reinterpret_cast<void*>(there), sizeof closed});
  }
  for (size_t next = 0; next < remote.size(); ++next) {
    const size_t left = remote.size() - next;
    const ssize_t written =
        process_vm_writev(getpid(), &local[next], left, &remote[next], left, 0);
    if (written > 0) next += static_cast<size_t>(written) / sizeof closed;
  }
}

}  // namespace penstock::e2e
