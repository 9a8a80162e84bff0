// The simulated driver's memory, and its copies.

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

char* MapMemory(size_t bytes, int access) {
  void* const at = mmap(nullptr, bytes, access,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) std::abort();
  return static_cast<char*>(at);
}

const FakeDriver::Block* FakeDriver::FindBlock(abi::Address at,
                                               abi::Address* begin) const {
  auto it = blocks_.upper_bound(at);
  if (it == blocks_.begin()) return nullptr;
  --it;
  if (at - it->first >= it->second.bytes) return nullptr;
  *begin = it->first;
  return &it->second;
}

char* FakeDriver::Backing(abi::Address at, size_t bytes) const {
  abi::Address begin = 0;
  const Block* const block = FindBlock(at, &begin);
  if (block == nullptr || bytes > block->bytes - (at - begin)) return nullptr;
  return block->backing.get() + (at - begin);
}

bool FakeDriver::IsPinned(const void* memory, size_t bytes) const {
  const char* const begin = static_cast<const char*>(memory);
  return Covers(pinned_, begin, bytes) || Covers(registered_, begin, bytes);
}

// Records a violation if freed memory will still be read or written by the
// device.
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

void FakeDriver::Unmap(abi::Address begin, const Block& block) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it was one
  munmap(reinterpret_cast<void*>(begin), block.bytes);
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
  block.id = NewBlockId();
  // Maps the block twice. This class uses `backing`. The program gets an
  // address at which every access crashes.
  block.backing = Behind(MapMemory(bytes, PROT_READ | PROT_WRITE),
                         [bytes](char* at) { munmap(at, bytes); });
  *address = reinterpret_cast<abi::Address>(MapMemory(bytes, PROT_NONE));
  blocks_[*address] = block;
  return abi::kSuccess;
}

abi::Result FakeDriver::MemFree(abi::Address address) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  (void)Begin("MemFree", true);
  const auto it = blocks_.find(address);
  if (it == blocks_.end() || it->second.opened > 0) {
    violations_.emplace_back("what is no block was freed");
    return abi::kInvalidValue;
  }
  RunAll();  // the driver waits for the device first
  if (SharedMemories::Get()->Remove(it->second.handle) > 0) {
    violations_.emplace_back("memory was freed that another process has open");
  }
  Unmap(address, it->second);
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
  abi::Address begin = 0;
  const Block* const block = FindBlock(address, &begin);
  if (block == nullptr) return abi::kInvalidValue;
  switch (attribute) {
    case abi::kPointerMemoryType:
      *static_cast<unsigned*>(value) = abi::kMemoryTypeDevice;
      return abi::kSuccess;
    case abi::kPointerDeviceOrdinal:
      *static_cast<int*>(value) = block->device;
      return abi::kSuccess;
    case abi::kPointerBufferId:
      *static_cast<uint64_t*>(value) = block->id;
      return abi::kSuccess;
    case abi::kPointerIsIpcCapable:
      *static_cast<int*>(value) = refuses_ipc_ ? 0 : 1;
      return abi::kSuccess;
    default:
      return abi::kInvalidValue;
  }
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
