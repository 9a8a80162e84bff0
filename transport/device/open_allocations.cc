#include "transport/device/open_allocations.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace device {

class OpenAllocations::Share {
 public:
  Share(OpenAllocations* table, Entries::iterator entry)
      : table_(table), entry_(entry) {}
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;
  ~Share() { table_->Drop(entry_); }

 private:
  OpenAllocations* const table_;
  const Entries::iterator entry_;
};

absl::StatusOr<memory::OpenAllocation> OpenAllocations::Open(
    absl::string_view name, absl::FunctionRef<absl::StatusOr<Mapping>()> map) {
  Entries::iterator entry;
  {
    base::MutexLock lock(&mu_);
    entry = FindLocked(std::string(name));
    if (entry != entries_.end()) return ShareLocked(entry);
    if (entries_.size() >= max_) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "this process has ", max_,
          " allocations of other processes open, which is the limit"));
    }
    entry = entries_.emplace(std::string(name), Entry()).first;
  }
  absl::StatusOr<Mapping> mapping = map();
  std::unique_ptr<memory::DeviceRange> declared;
  if (mapping.ok()) declared = Declare(*mapping);
  base::MutexLock lock(&mu_);
  settled_.notify_all();
  if (!mapping.ok()) {
    entries_.erase(entry);
    return mapping.status();
  }
  entry->second.is_open = true;
  entry->second.mapping = *std::move(mapping);
  entry->second.declared = std::move(declared);
  return ShareLocked(entry);
}

OpenAllocations::Entries::iterator OpenAllocations::FindLocked(
    const std::string& name) {
  for (;;) {
    // Looks up the entry again after each wait, because another thread may have
    // erased it.
    const auto entry = entries_.find(name);
    if (entry == entries_.end() || entry->second.is_open) return entry;
    settled_.wait(mu_);
  }
}

std::unique_ptr<memory::DeviceRange> OpenAllocations::Declare(
    const Mapping& mapping) const {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is one
  const auto* const data = reinterpret_cast<const uint8_t*>(mapping.address);
  return std::make_unique<memory::DeviceRange>(
      absl::Span<const uint8_t>(data, mapping.size), access_, /*poll=*/nullptr);
}

memory::OpenAllocation OpenAllocations::ShareLocked(Entries::iterator entry) {
  ++entry->second.shares;
  memory::OpenAllocation open;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is one
  open.data = reinterpret_cast<const uint8_t*>(entry->second.mapping.address);
  open.size = entry->second.mapping.size;
  open.owner = std::make_shared<const Share>(this, entry);
  return open;
}

void OpenAllocations::Drop(Entries::iterator entry) {
  Entry closed;
  {
    base::MutexLock lock(&mu_);
    if (--entry->second.shares > 0) return;
    closed = std::exchange(entry->second, Entry());
  }
  // Ends the declaration before closing the memory, because another allocation
  // may get the same addresses afterwards.
  closed.declared.reset();
  closed.mapping = Mapping();
  base::MutexLock lock(&mu_);
  entries_.erase(entry);
  settled_.notify_all();
}

bool OpenAllocations::IsForeign(abi::Address address) const {
  base::MutexLock lock(&mu_);
  return std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
    const Mapping& mapping = entry.second.mapping;
    return mapping.memory && address >= mapping.address &&
           address - mapping.address < mapping.size;
  });
}

}  // namespace device
}  // namespace penstock
