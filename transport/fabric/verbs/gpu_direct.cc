#include "transport/fabric/verbs/gpu_direct.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/fabric/verbs/gpu_trial.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// One range may be of an odd kind, and memory may be short for a while. But no
// message is to pay for tries for ever.
constexpr int kMaxTries = 3;

}  // namespace

absl::StatusOr<MemoryRegion> GpuDirect::Register(
    ibv_pd* pd, memory::DeviceAccess* gpu, absl::Span<const uint8_t> range,
    int access) {
  if (way_ == Way::kUnknown) {
    base::MutexLock lock(&mu_);
    if (way_ == Way::kUnknown) return FindWayLocked(pd, gpu, range, access);
  }
  if (way_ == Way::kNone) {
    base::MutexLock lock(&mu_);
    return no_way_;
  }
  absl::StatusOr<MemoryRegion> region =
      RegisterBy(way_, pd, gpu, range, access);
  if (region.ok()) return region;
  base::MutexLock lock(&mu_);
  last_failure_ = region.status();
  return region;
}

absl::StatusOr<MemoryRegion> GpuDirect::FindWayLocked(
    ibv_pd* pd, memory::DeviceAccess* gpu, absl::Span<const uint8_t> range,
    int access) {
  absl::StatusOr<MemoryRegion> dmabuf =
      RegisterBy(Way::kDmabuf, pd, gpu, range, access);
  if (dmabuf.ok()) {
    way_ = Way::kDmabuf;
    return dmabuf;
  }
  absl::StatusOr<MemoryRegion> address =
      RegisterBy(Way::kPeermem, pd, gpu, range, access);
  if (address.ok()) {
    way_ = Way::kPeermem;
    return address;
  }
  // Not the code, by which the caller may free regions and try again.
  no_way_ = absl::FailedPreconditionError(
      absl::StrCat("dmabuf: ", dmabuf.status().message(),
                   "; peermem: ", address.status().message()));
  const bool is_proof = absl::IsUnimplemented(dmabuf.status()) &&
                        !absl::IsResourceExhausted(address.status());
  if (++tries_ >= kMaxTries || is_proof) way_ = Way::kNone;
  return no_way_;
}

absl::StatusOr<MemoryRegion> GpuDirect::RegisterBy(
    Way way, ibv_pd* pd, memory::DeviceAccess* gpu,
    absl::Span<const uint8_t> range, int access) {
  if (way == Way::kPeermem) {
    return RegMr(api_, pd, const_cast<uint8_t*>(range.data()), range.size(),
                 access);
  }
  absl::StatusOr<memory::Dmabuf> dmabuf = gpu->ExportDmabuf(range);
  if (!dmabuf.ok()) return dmabuf.status();
  // The device keeps the memory by itself: the descriptor is closed.
  return RegDmabufMr(api_, pd, dmabuf->offset, range.size(), range.data(),
                     dmabuf->fd.get(), access);
}

absl::Status GpuDirect::Proof::Take(absl::Status status) {
  why_ = status;
  if (status.ok()) {
    verdict_ = Verdict::kGood;
  } else if (++tries_ >= kMaxTries) {
    verdict_ = Verdict::kRefused;
  }
  return status;
}

absl::Status GpuDirect::CheckWindows(
    const std::shared_ptr<const ProtectionDomain>& domain, ibv_mr* region,
    const memory::Bytes& bytes) {
  if (windows_.is_good()) return absl::OkStatus();
  base::MutexLock lock(&mu_);
  if (windows_.is_good() || !windows_.may_be()) return windows_.why();
  return windows_.Take(TryGpuWindow(api_, domain, port_, region, bytes));
}

absl::Status GpuDirect::CheckLanding(
    const std::shared_ptr<const ProtectionDomain>& domain, ibv_mr* region,
    const memory::Destination& into) {
  if (landing_.is_good()) return absl::OkStatus();
  base::MutexLock lock(&mu_);
  if (landing_.is_good() || !landing_.may_be()) return landing_.why();
  return landing_.Take(TryGpuLanding(api_, domain, port_, region, into));
}

std::string GpuDirect::Describe(bool with_windows) const {
  base::MutexLock lock(&mu_);
  if (way_ == Way::kNone) {
    return absl::StrCat("memory of GPUs staged: ", no_way_.message());
  }
  if (way_ == Way::kUnknown) return "";
  if (!with_windows && !landing_.may_be()) {
    return absl::StrCat("memory of GPUs staged: ", landing_.why().message());
  }
  std::string text = absl::StrCat("GPUDirect by ",
                                  way_ == Way::kDmabuf ? "dmabuf" : "peermem");
  if (!with_windows) {
    absl::StrAppend(&text, " for destinations");
  } else if (!windows_.may_be()) {
    absl::StrAppend(&text, ", not to send: ", windows_.why().message());
  }
  if (with_windows && !landing_.may_be()) {
    absl::StrAppend(&text,
                    ", not for destinations: ", landing_.why().message());
  }
  if (!last_failure_.ok()) {
    absl::StrAppend(&text, ", not of all memory: ", last_failure_.message());
  }
  return text;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
