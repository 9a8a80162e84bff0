// The system calls that write rows to a disk.

#ifndef PENSTOCK_PS_TIER_DISK_CALLS_H_
#define PENSTOCK_PS_TIER_DISK_CALLS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock::ps {

// The system calls, which a test overrides to inject failures. Each function
// fails as its system call does: -1 and errno. Thread-safe.
class DiskCalls {
 public:
  // The space of a file system, in bytes.
  struct Space {
    uint64_t free;  // for this user
    uint64_t all;
  };

  // Returns the object that makes the real system calls. The object lives for
  // ever.
  static DiskCalls* Kernel();

  DiskCalls() = default;
  DiskCalls(const DiskCalls&) = delete;
  DiskCalls& operator=(const DiskCalls&) = delete;
  virtual ~DiskCalls() = default;

  // Creates or truncates the file, and opens it for writing.
  virtual int Create(const std::string& path);
  virtual ssize_t Write(int fd, const char* data, size_t size, off_t at);
  virtual int Sync(int fd);
  // Truncates the file to zero bytes, which frees its space.
  virtual int Empty(int fd);
  // Returns the space of the file system of `path`. If the space is unknown,
  // returns unlimited space.
  virtual Space SpaceAt(const std::string& path);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_TIER_DISK_CALLS_H_
