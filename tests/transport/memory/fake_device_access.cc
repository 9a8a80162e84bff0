#include "tests/transport/memory/fake_device_access.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace memory {

// One allocation. The program sees addresses that it cannot touch. `backing`
// has the bytes.
struct FakeDeviceAccess::Allocation {
  Allocation(base::UniqueFd descriptor, size_t bytes)
      : fd(std::move(descriptor)), size(bytes) {
    backing = static_cast<uint8_t*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
    data = static_cast<uint8_t*>(
        mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (backing == MAP_FAILED || data == MAP_FAILED) abort();
  }
  ~Allocation() {
    munmap(backing, size);
    munmap(data, size);
  }

  const base::UniqueFd fd;
  const size_t size;
  uint8_t* backing;
  uint8_t* data;
  uint64_t id = 0;
  int ordinal = 0;
  // Weak references to the allocation and to the program's reference. Only for
  // memory that was allocated here.
  std::weak_ptr<Allocation> self;
  std::weak_ptr<const void> use;
  // The bytes that the device sees. Empty if these are the bytes in `backing`.
  std::vector<uint8_t> seen;

  const uint8_t* SeenAt(const uint8_t* address) const {
    return (seen.empty() ? backing : seen.data()) + (address - data);
  }
  void Write(const void* bytes, size_t length, const uint8_t* address) {
    std::memcpy(backing + (address - data), bytes, length);
    if (!seen.empty()) std::memcpy(&seen[address - data], bytes, length);
  }
};

struct FakeDeviceAccess::State {
  mutable std::mutex mu;
  // The allocations by address. Each is owned by its references, not by this
  // map.
  std::map<const uint8_t*, Allocation*> by_address;
  std::map<std::string, std::weak_ptr<Allocation>> open;
  absl::Status copies_fail, shares_fail, opens_fail, exports_fail, flushes_fail;
  bool needs_flushes = false;
  int flushes = 0;
  int copies = 0;
  int opens = 0;
  uint64_t next_id = 1;

  // Returns the allocation that contains the whole range, or null.
  Allocation* Find(absl::Span<const uint8_t> range) const {
    auto it = by_address.upper_bound(range.data());
    if (it == by_address.begin()) return nullptr;
    Allocation* const found = (--it)->second;
    const size_t offset = range.data() - found->data;
    return offset <= found->size && range.size() <= found->size - offset
               ? found
               : nullptr;
  }

  static std::shared_ptr<Allocation> Add(const std::shared_ptr<State>& state,
                                         base::UniqueFd fd, size_t size) {
    auto* const made = new Allocation(std::move(fd), size);
    std::lock_guard<std::mutex> lock(state->mu);
    made->id = state->next_id++;
    state->by_address[made->data] = made;
    return {made, [held = state](Allocation* allocation) mutable {
              {
                std::lock_guard<std::mutex> lock(held->mu);
                held->by_address.erase(allocation->data);
              }
              delete allocation;
              // Releases the reference without the lock. The reference may own
              // the allocation, and so this function.
              held.reset();
            }};
  }
};

FakeDeviceAccess::FakeDeviceAccess() : state_(std::make_shared<State>()) {}

FakeDeviceAccess::~FakeDeviceAccess() = default;

Bytes FakeDeviceAccess::Put(absl::string_view content, int ordinal) {
  base::UniqueFd fd(memfd_create("fake device", MFD_CLOEXEC));
  if (ftruncate(fd.get(), content.size()) != 0) abort();
  std::shared_ptr<Allocation> made =
      State::Add(state_, std::move(fd), content.size());
  std::lock_guard<std::mutex> lock(state_->mu);
  made->ordinal = ordinal;
  if (state_->needs_flushes) made->seen.resize(content.size());
  made->Write(content.data(), content.size(), made->data);
  made->self = made;
  const auto use =
      std::make_shared<const std::shared_ptr<Allocation>>(std::move(made));
  (*use)->use = use;
  return Bytes{(*use)->data, content.size(), use, this};
}

std::string FakeDeviceAccess::Get(absl::Span<const uint8_t> range) const {
  std::lock_guard<std::mutex> lock(state_->mu);
  const Allocation* const found = state_->Find(range);
  if (found == nullptr) return "no device memory";
  const uint8_t* const from = found->SeenAt(range.data());
  return std::string(from, from + range.size());
}

void FakeDeviceAccess::FailCopies(absl::Status error) {
  std::lock_guard<std::mutex> lock(state_->mu);
  state_->copies_fail = std::move(error);
}
void FakeDeviceAccess::FailShares(absl::Status error) {
  std::lock_guard<std::mutex> lock(state_->mu);
  state_->shares_fail = std::move(error);
}
void FakeDeviceAccess::FailOpens(absl::Status error) {
  std::lock_guard<std::mutex> lock(state_->mu);
  state_->opens_fail = std::move(error);
}
void FakeDeviceAccess::FailExports(absl::Status error) {
  std::lock_guard<std::mutex> lock(state_->mu);
  state_->exports_fail = std::move(error);
}
void FakeDeviceAccess::FailFlushes(absl::Status error) {
  std::lock_guard<std::mutex> lock(state_->mu);
  state_->flushes_fail = std::move(error);
}
void FakeDeviceAccess::NeedFlushes() {
  std::lock_guard<std::mutex> lock(state_->mu);
  state_->needs_flushes = true;
}
int FakeDeviceAccess::flushes() const {
  std::lock_guard<std::mutex> lock(state_->mu);
  return state_->flushes;
}
uint8_t* FakeDeviceAccess::Backing(absl::Span<const uint8_t> range) const {
  std::lock_guard<std::mutex> lock(state_->mu);
  const Allocation* const found = state_->Find(range);
  if (found == nullptr) return nullptr;
  return found->backing + (range.data() - found->data);
}
int FakeDeviceAccess::copies() const {
  std::lock_guard<std::mutex> lock(state_->mu);
  return state_->copies;
}
int FakeDeviceAccess::opens() const {
  std::lock_guard<std::mutex> lock(state_->mu);
  return state_->opens;
}
int FakeDeviceAccess::open_now() const {
  std::lock_guard<std::mutex> lock(state_->mu);
  int count = 0;
  for (const auto& one : state_->open) count += one.second.expired() ? 0 : 1;
  return count;
}

int FakeDeviceAccess::allocated() const {
  std::lock_guard<std::mutex> lock(state_->mu);
  int count = 0;
  for (const auto& one : state_->by_address) {
    count += one.second->self.expired() ? 0 : 1;
  }
  return count;
}

absl::Status FakeDeviceAccess::CopyToHost(absl::Span<const uint8_t> from,
                                          uint8_t* to) {
  std::lock_guard<std::mutex> lock(state_->mu);
  ++state_->copies;
  if (!state_->copies_fail.ok()) return state_->copies_fail;
  const Allocation* const found = state_->Find(from);
  if (found == nullptr) return absl::InvalidArgumentError("no such memory");
  std::memcpy(to, found->SeenAt(from.data()), from.size());
  return absl::OkStatus();
}

absl::Status FakeDeviceAccess::CopyFromHost(absl::Span<const uint8_t> from,
                                            uint8_t* to) {
  std::lock_guard<std::mutex> lock(state_->mu);
  ++state_->copies;
  if (!state_->copies_fail.ok()) return state_->copies_fail;
  Allocation* const found = state_->Find({to, from.size()});
  if (found == nullptr) return absl::InvalidArgumentError("no such memory");
  found->Write(from.data(), from.size(), to);
  return absl::OkStatus();
}

absl::StatusOr<SharedAllocation> FakeDeviceAccess::Share(
    absl::Span<const uint8_t> range) {
  std::lock_guard<std::mutex> lock(state_->mu);
  if (!state_->shares_fail.ok()) return state_->shares_fail;
  const Allocation* const found = state_->Find(range);
  if (found == nullptr) return absl::InvalidArgumentError("no such memory");
  SharedAllocation shared;
  shared.id = found->id;
  shared.size = found->size;
  shared.offset = range.data() - found->data;
  shared.handle =
      absl::StrCat("/proc/", getpid(), "/fd/", found->fd.get(), "#", found->id);
  shared.memory = found->self.lock();
  shared.use = found->use;
  return shared;
}

absl::StatusOr<OpenAllocation> FakeDeviceAccess::Open(absl::string_view handle,
                                                      uint64_t size) {
  const std::string name(handle);
  {
    std::lock_guard<std::mutex> lock(state_->mu);
    ++state_->opens;
    if (!state_->opens_fail.ok()) return state_->opens_fail;
    std::shared_ptr<Allocation> open = state_->open[name].lock();
    if (open != nullptr) return OpenAllocation{open->data, open->size, open};
  }
  base::UniqueFd fd(
      open(name.substr(0, name.find('#')).c_str(), O_RDWR | O_CLOEXEC));
  struct stat stat;
  if (!fd.valid() || fstat(fd.get(), &stat) != 0 ||
      static_cast<uint64_t>(stat.st_size) != size) {
    return absl::UnavailableError("the handle's process has gone");
  }
  std::shared_ptr<Allocation> made = State::Add(state_, std::move(fd), size);
  std::lock_guard<std::mutex> lock(state_->mu);
  state_->open[name] = made;
  return OpenAllocation{made->data, made->size, made};
}

absl::StatusOr<int> FakeDeviceAccess::OrdinalOf(
    absl::Span<const uint8_t> range) {
  std::lock_guard<std::mutex> lock(state_->mu);
  const Allocation* const found = state_->Find(range);
  if (found == nullptr) return absl::InvalidArgumentError("no such memory");
  return found->ordinal;
}

absl::StatusOr<Dmabuf> FakeDeviceAccess::ExportDmabuf(
    absl::Span<const uint8_t> range) {
  std::lock_guard<std::mutex> lock(state_->mu);
  if (!state_->exports_fail.ok()) return state_->exports_fail;
  const Allocation* const found = state_->Find(range);
  if (found == nullptr) return absl::InvalidArgumentError("no such memory");
  Dmabuf dmabuf;
  dmabuf.fd = base::UniqueFd(fcntl(found->fd.get(), F_DUPFD_CLOEXEC, 0));
  dmabuf.offset = range.data() - found->data;
  return dmabuf;
}

absl::Status FakeDeviceAccess::FlushWrites(absl::Span<const uint8_t> range) {
  std::lock_guard<std::mutex> lock(state_->mu);
  ++state_->flushes;
  if (!state_->flushes_fail.ok()) return state_->flushes_fail;
  Allocation* const found = state_->Find(range);
  if (found == nullptr) return absl::InvalidArgumentError("no such memory");
  const size_t at = range.data() - found->data;
  if (!found->seen.empty()) {
    std::memcpy(&found->seen[at], found->backing + at, range.size());
  }
  return absl::OkStatus();
}

}  // namespace memory
}  // namespace penstock
