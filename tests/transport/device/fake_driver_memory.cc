// The memory of the driver in memory, and the copies.

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/transport/device/fake_objects.h"

namespace penstock {
namespace device {
namespace {

bool Covers(const std::map<const char*, size_t>& ranges, const char* begin,
            size_t bytes) {
  auto it = ranges.upper_bound(begin);
  if (it == ranges.begin()) return false;
  --it;
  return begin + bytes <= it->first + it->second;
}

}  // namespace

char* FakeDriver::Backing(abi::Address at, size_t bytes) const {
  auto it = blocks_.upper_bound(at);
  if (it == blocks_.begin()) return nullptr;
  --it;
  const uint64_t offset = at - it->first;
  if (offset > it->second.bytes || bytes > it->second.bytes - offset) {
    return nullptr;
  }
  return it->second.backing + offset;
}

bool FakeDriver::IsPinned(const void* memory, size_t bytes) const {
  const char* const begin = static_cast<const char*>(memory);
  return Covers(pinned_, begin, bytes) || Covers(registered_, begin, bytes);
}

// Memory that the device would yet read or write is not to go.
void FakeDriver::CheckUnused(const char* what, const void* memory,
                             size_t bytes) {
  const char* const begin = static_cast<const char*>(memory);
  for (abi::Stream stream : streams_) {
    for (const abi::Work& work : stream->queue) {
      if (work.begin < begin + bytes && begin < work.begin + work.bytes) {
        violations_.push_back(absl::StrCat(what, " while a copy is queued"));
      }
    }
  }
}

std::string FakeDriver::Read(abi::Address at, size_t bytes) const {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  return std::string(Backing(at, bytes), bytes);
}

void FakeDriver::Write(abi::Address at, const std::string& bytes) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  std::memcpy(Backing(at, bytes.size()), bytes.data(), bytes.size());
}

abi::Result FakeDriver::MemAlloc(abi::Address* address, size_t bytes) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("MemAlloc");
  if (begun != abi::kSuccess) return begun;
  if (bytes == 0) return abi::kInvalidValue;
  Block block;
  block.device = Current()->device;
  block.bytes = bytes;
  uint64_t& used = used_[block.device];
  if (bytes > bytes_of_each_ - used) return abi::kOutOfMemory;
  used += bytes;
  // Two views of it: the CPU's, for this class, and the device's, of which only
  // the addresses count.
  block.backing = static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  void* const seen = mmap(nullptr, bytes, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (block.backing == MAP_FAILED || seen == MAP_FAILED) std::abort();
  *address = reinterpret_cast<abi::Address>(seen);
  blocks_[*address] = block;
  return abi::kSuccess;
}

abi::Result FakeDriver::MemFree(abi::Address address) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  (void)Begin("MemFree", true);
  const auto it = blocks_.find(address);
  if (it == blocks_.end()) return abi::kInvalidValue;
  RunAll();  // the driver waits for the device
  munmap(it->second.backing, it->second.bytes);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it was one
  munmap(reinterpret_cast<void*>(address), it->second.bytes);
  used_[it->second.device] -= it->second.bytes;
  blocks_.erase(it);
  return abi::kSuccess;
}

abi::Result FakeDriver::MemHostAlloc(void** memory, size_t bytes,
                                     unsigned flags) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("MemHostAlloc");
  if (begun != abi::kSuccess) return begun;
  if (refuses_pinning_) return abi::kOutOfMemory;
  *memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  pinned_[static_cast<char*>(*memory)] = bytes;
  return abi::kSuccess;
}

abi::Result FakeDriver::MemFreeHost(void* memory) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  (void)Begin("MemFreeHost", true);
  const auto it = pinned_.find(static_cast<char*>(memory));
  if (it == pinned_.end()) return abi::kInvalidValue;
  CheckUnused("pinned memory was freed", memory, it->second);
  pinned_.erase(it);
  std::free(memory);
  return abi::kSuccess;
}

abi::Result FakeDriver::MemHostRegister(void* memory, size_t bytes,
                                        unsigned flags) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("MemHostRegister");
  if (begun != abi::kSuccess) return begun;
  if (refuses_pinning_) return abi::kOutOfMemory;
  char* const begin = static_cast<char*>(memory);
  if (reinterpret_cast<uintptr_t>(begin) % 4096 != 0 || bytes % 4096 != 0) {
    violations_.emplace_back("a part of a page was registered");
  }
  for (const auto& range : registered_) {
    if (range.first < begin + bytes && begin < range.first + range.second) {
      return abi::kHostMemoryAlreadyRegistered;
    }
  }
  registered_[begin] = bytes;
  return abi::kSuccess;
}

abi::Result FakeDriver::MemHostUnregister(void* memory) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  (void)Begin("MemHostUnregister", true);
  const auto it = registered_.find(static_cast<char*>(memory));
  if (it == registered_.end()) return abi::kHostMemoryNotRegistered;
  CheckUnused("a range was unpinned", memory, it->second);
  registered_.erase(it);
  return abi::kSuccess;
}

abi::Result FakeDriver::PointerGetAttribute(void* value, int attribute,
                                            abi::Address address) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("PointerGetAttribute");
  if (begun != abi::kSuccess) return begun;
  auto it = blocks_.upper_bound(address);
  if (it == blocks_.begin() ||
      address - std::prev(it)->first >= std::prev(it)->second.bytes) {
    return abi::kInvalidValue;
  }
  if (attribute == abi::kPointerMemoryType) {
    *static_cast<unsigned*>(value) = abi::kMemoryTypeDevice;
  } else {
    *static_cast<int*>(value) = std::prev(it)->second.device;
  }
  return abi::kSuccess;
}

abi::Result FakeDriver::QueueCopy(const char* name, abi::Stream stream,
                                  char* to, const char* from, size_t bytes,
                                  const void* host) {
  const abi::Result begun = BeginHere(name);
  if (begun != abi::kSuccess) return begun;
  if (!Knows(stream)) return abi::kInvalidHandle;
  if (to == nullptr || from == nullptr) return abi::kInvalidValue;
  if (host != nullptr && !IsPinned(host, bytes)) {
    RunUntil(stream, stream->queued);
    std::memcpy(to, from, bytes);
    return abi::kSuccess;
  }
  abi::Work work;
  work.run = [to, from, bytes] { std::memcpy(to, from, bytes); };
  work.begin = static_cast<const char*>(host);
  work.bytes = host == nullptr ? 0 : bytes;
  stream->queue.push_back(std::move(work));
  ++stream->queued;
  return abi::kSuccess;
}

abi::Result FakeDriver::MemcpyHtoDAsync(abi::Address to, const void* from,
                                        size_t bytes, abi::Stream stream) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  return QueueCopy("MemcpyHtoDAsync", stream, Backing(to, bytes),
                   static_cast<const char*>(from), bytes, from);
}

abi::Result FakeDriver::MemcpyDtoHAsync(void* to, abi::Address from,
                                        size_t bytes, abi::Stream stream) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  return QueueCopy("MemcpyDtoHAsync", stream, static_cast<char*>(to),
                   Backing(from, bytes), bytes, to);
}

abi::Result FakeDriver::MemcpyDtoDAsync(abi::Address to, abi::Address from,
                                        size_t bytes, abi::Stream stream) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  return QueueCopy("MemcpyDtoDAsync", stream, Backing(to, bytes),
                   Backing(from, bytes), bytes, nullptr);
}

abi::Result FakeDriver::MemcpyPeerAsync(abi::Address to,
                                        abi::Context to_context,
                                        abi::Address from,
                                        abi::Context from_context, size_t bytes,
                                        abi::Stream stream) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  return QueueCopy("MemcpyPeerAsync", stream, Backing(to, bytes),
                   Backing(from, bytes), bytes, nullptr);
}

}  // namespace device
}  // namespace penstock
