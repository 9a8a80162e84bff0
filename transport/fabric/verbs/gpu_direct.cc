#include "transport/fabric/verbs/gpu_direct.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "transport/base/token.h"
#include "transport/fabric/verbs/gpu_trial.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// Of an address, the low bits stay as they are, so that the device can use as
// large pages as it could there. The highest is 0, as in all addresses of
// programs; then no range wraps around.
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

absl::StatusOr<GpuReach*> GpuDirect::ReachOf(const memory::Bytes& bytes) {
  absl::StatusOr<int> ordinal = bytes.device->OrdinalOf(bytes.span());
  if (!ordinal.ok()) return ordinal.status();
  base::MutexLock lock(&mu_);
  std::unique_ptr<GpuReach>& known = reaches_[{bytes.device, *ordinal}];
  if (known == nullptr) known = std::make_unique<GpuReach>();
  return known.get();
}

bool GpuDirect::may_be(GpuUse use) const {
  base::MutexLock lock(&mu_);
  return reaches_.empty() || std::any_of(reaches_.begin(), reaches_.end(),
                                         [use](const auto& known) {
                                           return known.second->may_be(use);
                                         });
}

std::string GpuDirect::Describe(bool with_windows) const {
  std::vector<std::pair<int, const GpuReach*>> gpus;
  {
    base::MutexLock lock(&mu_);
    for (const auto& known : reaches_) {
      gpus.emplace_back(known.first.second, known.second.get());
    }
  }
  std::set<std::string> all;
  std::vector<std::string> of_each;
  for (const auto& gpu : gpus) {
    std::string text = gpu.second->Describe(with_windows);
    if (!text.empty()) {
      of_each.push_back(absl::StrCat("GPU ", gpu.first, ": ", text));
    }
    all.insert(std::move(text));
  }
  return all.size() == 1 ? *all.begin() : absl::StrJoin(of_each, "; ");
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
  // The device keeps the memory by itself: the descriptor is closed.
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
