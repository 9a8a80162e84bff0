// The system calls by which tables of rows get to a disk.

#ifndef PENSTOCK_PS_TIER_DISK_CALLS_H_
#define PENSTOCK_PS_TIER_DISK_CALLS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock::ps {

// Calls the kernel. A test derives from it, and lets calls fail. Each call
// fails as the kernel's does: -1 and errno. Thread-safe.
class DiskCalls {
 public:
  // Bytes of a file system.
  struct Space {
    uint64_t free;  // for this user
    uint64_t all;
  };

  // Returns the one that calls the kernel. It lives forever.
  static DiskCalls* Kernel();

  DiskCalls() = default;
  DiskCalls(const DiskCalls&) = delete;
  DiskCalls& operator=(const DiskCalls&) = delete;
  virtual ~DiskCalls() = default;

  // Makes the file anew, and opens it for writing.
  virtual int Create(const std::string& path);
  virtual ssize_t Write(int fd, const char* data, size_t size, off_t at);
  virtual int Sync(int fd);
  // Gives all of the file's room back.
  virtual int Empty(int fd);
  // Returns what the file system of `path` has. If nobody can tell, the space
  // is unlimited.
  virtual Space SpaceAt(const std::string& path);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_TIER_DISK_CALLS_H_
