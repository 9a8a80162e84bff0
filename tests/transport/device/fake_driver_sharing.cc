// The simulated driver's functions that share memory between processes and
// between devices.

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "tests/transport/device/fake_objects.h"

namespace penstock {
namespace device {
namespace {

std::string TextOf(const abi::IpcMemHandle& handle) {
  return std::string(handle.bytes, sizeof handle.bytes);
}

// Returns a descriptor of a copy of [from, from + bytes), or -1.
int CopyToFile(const char* from, size_t bytes) {
  const int fd = memfd_create("fake dma-buf", 0);
  if (fd < 0) return -1;
  size_t done = 0;
  while (done < bytes) {
    const ssize_t wrote = write(fd, from + done, bytes - done);
    if (wrote <= 0) std::abort();
    done += static_cast<size_t>(wrote);
  }
  return fd;
}

}  // namespace

uint64_t NewBlockId() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

SharedMemories* SharedMemories::Get() {
  static auto* const all = new SharedMemories;
  return all;
}

std::string SharedMemories::Add(const SharedMemory& memory) {
  std::lock_guard<std::mutex> lock(mu_);
  std::string handle = absl::StrCat("handle ", ++last_);
  handle.resize(sizeof(abi::IpcMemHandle), '.');
  memories_[handle] = memory;
  return handle;
}

bool SharedMemories::Open(const std::string& handle, SharedMemory* memory) {
  std::lock_guard<std::mutex> lock(mu_);
  const auto it = memories_.find(handle);
  if (it == memories_.end()) return false;
  ++it->second.opened;
  *memory = it->second;
  return true;
}

void SharedMemories::Close(const std::string& handle) {
  std::lock_guard<std::mutex> lock(mu_);
  const auto it = memories_.find(handle);
  if (it != memories_.end()) --it->second.opened;
}

int SharedMemories::Remove(const std::string& handle) {
  std::lock_guard<std::mutex> lock(mu_);
  const auto it = memories_.find(handle);
  if (it == memories_.end()) return 0;
  const int opened = it->second.opened;
  memories_.erase(it);
  return opened;
}

void SharedMemories::RemoveAllOf(const FakeDriver* owner) {
  std::lock_guard<std::mutex> lock(mu_);
  for (auto it = memories_.begin(); it != memories_.end();) {
    it = it->second.owner == owner ? memories_.erase(it) : std::next(it);
  }
}

void FakeDriver::RefuseIpc(bool refuse) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  refuses_ipc_ = refuse;
}

void FakeDriver::RefusePeers() {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  refuses_peers_ = true;
}

bool FakeDriver::Reaches(int device, int peer) const {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  return reaches_.count({device, peer}) > 0;
}

size_t FakeDriver::OpenCount() const {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  size_t count = 0;
  for (const auto& block : blocks_) count += block.second.opened > 0 ? 1 : 0;
  return count;
}

abi::Result FakeDriver::MemGetAddressRange(abi::Address* address, size_t* bytes,
                                           abi::Address within) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("MemGetAddressRange");
  if (begun != abi::kSuccess) return begun;
  const Block* const block = FindBlock(within, address);
  if (block == nullptr) return abi::kNotFound;
  *bytes = block->bytes;
  return abi::kSuccess;
}

abi::Result FakeDriver::IpcGetMemHandle(abi::IpcMemHandle* handle,
                                        abi::Address address) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("IpcGetMemHandle");
  if (begun != abi::kSuccess) return begun;
  const auto it = blocks_.find(address);
  if (it == blocks_.end() || refuses_ipc_) return abi::kInvalidValue;
  Block& block = it->second;
  if (block.opened > 0) {
    violations_.emplace_back("memory of another process was shared");
    return abi::kInvalidValue;
  }
  if (block.handle.empty()) {
    block.handle = SharedMemories::Get()->Add(
        {this, address, hardware_[block.device], block.bytes, block.backing});
  }
  std::memcpy(handle->bytes, block.handle.data(), sizeof handle->bytes);
  return abi::kSuccess;
}

abi::Result FakeDriver::IpcOpenMemHandle(abi::Address* address,
                                         const abi::IpcMemHandle& handle,
                                         unsigned flags) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("IpcOpenMemHandle");
  if (begun != abi::kSuccess) return begun;
  if (flags != abi::kIpcLazyEnablePeerAccess) return abi::kInvalidValue;
  const std::string text = TextOf(handle);
  for (auto& block : blocks_) {
    if (block.second.handle != text) continue;
    // A process cannot open its own block.
    if (block.second.opened == 0) return abi::kInvalidContext;
    ++block.second.opened;
    *address = block.first;
    return abi::kSuccess;
  }
  SharedMemory memory;
  if (!SharedMemories::Get()->Open(text, &memory)) return abi::kInvalidValue;
  Block block;
  block.device = Current()->device;
  if (hardware_[block.device] != memory.hardware) {
    violations_.emplace_back("memory was opened on another device than its");
  }
  block.bytes = memory.bytes;
  block.backing = memory.backing;
  block.id = NewBlockId();
  block.handle = text;
  block.opened = 1;
  *address = reinterpret_cast<abi::Address>(MapMemory(block.bytes, PROT_NONE));
  blocks_[*address] = block;
  return abi::kSuccess;
}

abi::Result FakeDriver::IpcCloseMemHandle(abi::Address address) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  (void)Begin("IpcCloseMemHandle", true);
  const auto it = blocks_.find(address);
  if (it == blocks_.end() || it->second.opened == 0) {
    violations_.emplace_back("what is not open was closed");
    return abi::kInvalidValue;
  }
  if (--it->second.opened > 0) return abi::kSuccess;
  RunAll();
  SharedMemories::Get()->Close(it->second.handle);
  Unmap(address, it->second);
  blocks_.erase(it);
  return abi::kSuccess;
}

abi::Result FakeDriver::MemGetHandleForAddressRange(void* handle,
                                                    abi::Address address,
                                                    size_t bytes, int type,
                                                    uint64_t flags) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("MemGetHandleForAddressRange");
  if (begun != abi::kSuccess) return begun;
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  abi::Address begin = 0;
  const Block* const block = FindBlock(address, &begin);
  if (block == nullptr || type != abi::kRangeHandleDmaBufFd || flags != 0 ||
      address % page != 0 || bytes % page != 0) {
    return abi::kInvalidValue;
  }
  // Rounds the size up: a block consists of whole pages, whatever size was
  // requested.
  const uint64_t there = (block->bytes + page - 1) / page * page;
  if (bytes > there - (address - begin)) return abi::kInvalidValue;
  const int fd = CopyToFile(block->backing.get() + (address - begin), bytes);
  if (fd < 0) return abi::kOperatingSystem;
  *static_cast<int*>(handle) = fd;
  return abi::kSuccess;
}

abi::Result FakeDriver::FlushGPUDirectRDMAWrites(int target, int scope) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("FlushGPUDirectRDMAWrites");
  if (begun != abi::kSuccess) return begun;
  const bool is_known = target == abi::kFlushWritesOfCurrentContext &&
                        scope == abi::kFlushWritesToOwner;
  return is_known ? abi::kSuccess : abi::kInvalidValue;
}

abi::Result FakeDriver::DeviceCanAccessPeer(int* can, abi::DeviceId device,
                                            abi::DeviceId peer) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = Begin("DeviceCanAccessPeer");
  if (begun != abi::kSuccess) return begun;
  *can = device != peer && !refuses_peers_ ? 1 : 0;
  return abi::kSuccess;
}

abi::Result FakeDriver::CtxEnablePeerAccess(abi::Context peer, unsigned flags) {
  std::lock_guard<std::recursive_mutex> lock(mu_);
  const abi::Result begun = BeginHere("CtxEnablePeerAccess");
  if (begun != abi::kSuccess) return begun;
  if (flags != 0 || peer == Current()) return abi::kInvalidValue;
  if (refuses_peers_) return abi::kPeerAccessUnsupported;
  const bool is_new = reaches_.insert({Current()->device, peer->device}).second;
  return is_new ? abi::kSuccess : abi::kPeerAccessAlreadyEnabled;
}

}  // namespace device
}  // namespace penstock
