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
  base::MutexLock lock(&mu_);
  auto entry = entries_.find(std::string(name));
  if (entry == entries_.end()) {
    if (entries_.size() >= max_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("this process has ", max_,
                       " allocations of other processes open, as many as it "
                       "may"));
    }
    absl::StatusOr<Mapping> mapping = map();
    if (!mapping.ok()) return mapping.status();
    entry = entries_.emplace(std::string(name), Entry()).first;
    entry->second.mapping = *std::move(mapping);
    const Mapping& mapped = entry->second.mapping;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is one
    const auto* const data = reinterpret_cast<const uint8_t*>(mapped.address);
    entry->second.declared = std::make_unique<memory::DeviceRange>(
        absl::Span<const uint8_t>(data, mapped.size), access_,
        /*poll=*/nullptr);
  }
  ++entry->second.shares;
  memory::OpenAllocation open;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): it is one
  open.data = reinterpret_cast<const uint8_t*>(entry->second.mapping.address);
  open.size = entry->second.mapping.size;
  open.owner = std::make_shared<const Share>(this, entry);
  return open;
}

void OpenAllocations::Drop(Entries::iterator entry) {
  base::MutexLock lock(&mu_);
  if (--entry->second.shares == 0) entries_.erase(entry);
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
