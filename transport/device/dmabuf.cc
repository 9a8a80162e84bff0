#include "transport/device/dmabuf.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace device {
namespace {

bool IsRefusal(abi::Result result) {
  return result == abi::kNotSupported || result == abi::kInvalidValue ||
         result == abi::kNotPermitted;
}

}  // namespace

absl::StatusOr<memory::Dmabuf> ExportPages(Device* device,
                                           absl::Span<const uint8_t> range) {
  if (range.empty()) {
    return absl::InvalidArgumentError("an empty range has no dma-buf");
  }
  if (!device->traits().has_dma_buf) {
    return absl::FailedPreconditionError(absl::StrCat(
        device->ToString(),
        " exports no dma-buf: that takes NVIDIA's open kernel modules and "
        "Linux 5.12"));
  }
  absl::StatusOr<Device::Entered> entered = device->Enter();
  if (!entered.ok()) return entered.status();
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<abi::Address>(range.data());
  const abi::Address begin = address / page * page;
  const abi::Address end = (address + range.size() + page - 1) / page * page;
  int fd = -1;
  const abi::Result exported = device->api()->MemGetHandleForAddressRange(
      &fd, begin, end - begin, abi::kRangeHandleDmaBufFd, /*flags=*/0);
  absl::Status checked = device->Check(exported, "export a dma-buf");
  if (IsRefusal(exported)) {
    return absl::FailedPreconditionError(absl::StrCat(
        checked.message(),
        "; the driver is older than CUDA 11.7, or this memory is of a kind "
        "that network devices cannot reach"));
  }
  if (!checked.ok()) return checked;
  memory::Dmabuf dmabuf;
  dmabuf.fd = base::UniqueFd(fd);
  dmabuf.offset = address - begin;
  // Closes the descriptor in programs that this process starts.
  (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
  return dmabuf;
}

}  // namespace device
}  // namespace penstock
