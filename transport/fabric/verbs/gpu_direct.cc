#include "transport/fabric/verbs/gpu_direct.h"

#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "transport/base/token.h"
#include "transport/fabric/verbs/gpu_trial.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// The size of a large page, in bytes. A random address keeps the low bits of
// the real address, so that the device can use equally large pages. The highest
// bit is 0, as in all addresses of programs, so that no range wraps around.
constexpr uint64_t kLargePageBytes = uint64_t{2} << 20;
constexpr uint64_t kRandomBits = (~uint64_t{0} >> 1) & ~(kLargePageBytes - 1);

uint64_t AddressOf(const uint8_t* data) {
  return reinterpret_cast<uintptr_t>(data);
}

absl::StatusOr<uint64_t> RandomAddress(uint64_t like) {
  const absl::StatusOr<std::string> token = base::NewToken();
  if (!token.ok()) return token.status();
  uint64_t random;
  static_assert(base::kTokenBytes >= sizeof random, "");
  std::memcpy(&random, token->data(), sizeof random);
  return (random & kRandomBits) | (like & (kLargePageBytes - 1));
}

}  // namespace

absl::StatusOr<GpuReach*> GpuDirect::ReachOf(const memory::Bytes& bytes,
                                             bool is_named) {
  absl::StatusOr<int> ordinal = bytes.device->OrdinalOf(bytes.span());
  if (!ordinal.ok()) return ordinal.status();
  base::MutexLock lock(&mu_);
  std::unique_ptr<GpuReach>& known =
      reaches_[std::make_tuple(bytes.device, *ordinal, is_named)];
  if (known == nullptr) known = std::make_unique<GpuReach>();
  return known.get();
}

bool GpuDirect::may_be(GpuUse use) const {
  base::MutexLock lock(&mu_);
  bool is_any_named = false;
  for (const auto& known : reaches_) {
    const bool is_named = std::get<bool>(known.first);
    if (is_named && known.second->may_be(use)) return true;
    is_any_named |= is_named;
  }
  return !is_any_named;
}

std::string GpuDirect::Describe(bool with_windows) const {
  std::vector<std::pair<std::string, const GpuReach*>> all;
  {
    base::MutexLock lock(&mu_);
    for (const auto& known : reaches_) {
      all.emplace_back(
          absl::StrCat(std::get<bool>(known.first) ? "" : "other memory of ",
                       "GPU ", std::get<int>(known.first)),
          known.second.get());
    }
  }
  // Calls Describe() without the lock, because a thread that tests a GPU may
  // hold the lock of its GpuReach for long.
  std::set<std::string> texts;
  std::vector<std::string> named;
  for (const auto& known : all) {
    const std::string text = known.second->Describe(with_windows);
    if (text.empty()) continue;
    texts.insert(text);
    named.push_back(absl::StrCat(known.first, ": ", text));
  }
  return texts.size() == 1 ? *texts.begin() : absl::StrJoin(named, "; ");
}

absl::StatusOr<MemoryRegion> GpuDirect::Register(
    GpuWay way, ibv_pd* pd, memory::DeviceAccess* gpu,
    absl::Span<const uint8_t> range, int access) {
  switch (way) {
    case GpuWay::kDmabuf:
      return RegisterDmabuf(pd, gpu, range, AddressOf(range.data()),
                            IBV_ACCESS_LOCAL_WRITE);
    case GpuWay::kPeermem:
      break;
  }
  return RegMr(api_, pd, const_cast<uint8_t*>(range.data()), range.size(),
               access);
}

absl::StatusOr<MemoryRegion> GpuDirect::RegisterForPeers(
    ibv_pd* pd, memory::DeviceAccess* gpu, absl::Span<const uint8_t> range) {
  const absl::StatusOr<uint64_t> iova = RandomAddress(AddressOf(range.data()));
  if (!iova.ok()) return iova.status();
  return RegisterDmabuf(pd, gpu, range, *iova, IBV_ACCESS_REMOTE_READ);
}

absl::StatusOr<MemoryRegion> GpuDirect::RegisterDmabuf(
    ibv_pd* pd, memory::DeviceAccess* gpu, absl::Span<const uint8_t> range,
    uint64_t iova, int access) {
  absl::StatusOr<memory::Dmabuf> dmabuf = gpu->ExportDmabuf(range);
  if (!dmabuf.ok()) return dmabuf.status();
  // Registers the memory, then closes the descriptor: the registration itself
  // keeps the memory.
  return RegDmabufMr(api_, pd, dmabuf->offset, range.size(), iova,
                     dmabuf->fd.get(), access);
}

absl::Status GpuDirect::TryWindow(
    const std::shared_ptr<const ProtectionDomain>& domain, ibv_mr* region,
    const memory::Bytes& bytes) {
  return TryGpuWindow(api_, domain, port_, region, bytes);
}

absl::Status GpuDirect::TryKey(
    const std::shared_ptr<const ProtectionDomain>& domain, ibv_mr* region,
    const memory::Bytes& bytes) {
  return TryGpuKey(api_, domain, port_, region, bytes);
}

absl::Status GpuDirect::TryLanding(
    const std::shared_ptr<const ProtectionDomain>& domain, ibv_mr* region,
    const memory::Destination& into) {
  return TryGpuLanding(api_, domain, port_, region, into);
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
