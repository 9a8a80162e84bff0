// A disk that fails on request.

#ifndef PENSTOCK_TESTS_PS_TIER_FAILING_DISK_H_
#define PENSTOCK_TESTS_PS_TIER_FAILING_DISK_H_

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

#include "ps/tier/disk_calls.h"

namespace penstock::ps {

// Calls the kernel's functions until a test makes the disk fail. Thread-safe.
class FailingDisk : public DiskCalls {
 public:
  // The errno with which a call fails; 0 means that the call works.
  std::atomic<int> create{0};
  std::atomic<int> write{0};
  std::atomic<int> sync{0};
  // Limits the bytes that one write accepts.
  std::atomic<size_t> most{SIZE_MAX};
  // The number of failed calls.
  std::atomic<uint64_t> failures{0};
  // Makes writes block, as on a disk that does not answer.
  std::atomic<bool> hangs{false};
  // The free space that the disk reports, in bytes; 0 means the true free
  // space.
  std::atomic<uint64_t> free_bytes{0};

  int Create(const std::string& path) override {
    return Fails(create) ? -1 : DiskCalls::Create(path);
  }
  ssize_t Write(int fd, const char* data, size_t size, off_t at) override {
    while (hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (Fails(write)) return -1;
    return DiskCalls::Write(fd, data, std::min<size_t>(size, most), at);
  }
  int Sync(int fd) override { return Fails(sync) ? -1 : DiskCalls::Sync(fd); }
  Space SpaceAt(const std::string& path) override {
    Space space = DiskCalls::SpaceAt(path);
    if (free_bytes != 0) space.free = free_bytes;
    return space;
  }

 private:
  bool Fails(int error) {
    if (error == 0) return false;
    ++failures;
    errno = error;
    return true;
  }
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_TIER_FAILING_DISK_H_
