// Errors of operations as exceptions of PyTorch.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_ERRORS_H_
#define PENSTOCK_FRAMEWORKS_TORCH_ERRORS_H_

#include <exception>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "frameworks/torch/torch_headers.h"

namespace penstock {
namespace pytorch {

// Returns torch.distributed.DistBackendError, as Python sees it.
inline std::exception_ptr ErrorOf(const char* title,
                                  const absl::Status& status) {
  return std::make_exception_ptr(
      c10::DistBackendError({__func__, __FILE__, __LINE__},
                            absl::StrCat(title, ": ", status.ToString())));
}

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_ERRORS_H_
