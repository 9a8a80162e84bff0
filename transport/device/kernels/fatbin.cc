#include "transport/device/kernels/fatbin.h"

#include "absl/status/status.h"
#include "transport/device/kernels/embedded.h"

namespace penstock::device::kernels {

absl::StatusOr<absl::Span<const unsigned char>> Fatbin() {
  if (kReduceFatbinSize == 0) {
    return absl::UnimplementedError(
        "reduction kernels: built without CUDA's compiler: kernels are left "
        "out");
  }
  return absl::MakeConstSpan(kReduceFatbin, kReduceFatbinSize);
}

absl::string_view Architectures() { return kReduceArchitectures; }

}  // namespace penstock::device::kernels
