#include "transport/fabric/verbs/gpu_direct.h"

#include <cstring>

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
