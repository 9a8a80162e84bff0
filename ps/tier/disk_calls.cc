#include "ps/tier/disk_calls.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <limits>

namespace penstock::ps {

DiskCalls* DiskCalls::Kernel() {
  static auto* const kernel = new DiskCalls;
  return kernel;
}

int DiskCalls::Create(const std::string& path) {
  return open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
}

ssize_t DiskCalls::Write(int fd, const char* data, size_t size, off_t at) {
  return pwrite(fd, data, size, at);
}

int DiskCalls::Sync(int fd) { return fdatasync(fd); }

int DiskCalls::Empty(int fd) { return ftruncate(fd, 0); }

DiskCalls::Space DiskCalls::SpaceAt(const std::string& path) {
  struct statvfs space;
  if (statvfs(path.c_str(), &space) != 0) {
    constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();
    return {kUnlimited, kUnlimited};
  }
  return {uint64_t{space.f_bavail} * space.f_frsize,
          uint64_t{space.f_blocks} * space.f_frsize};
}

}  // namespace penstock::ps
