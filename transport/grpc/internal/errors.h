// Makes gRPC errors that carry a status code.

#ifndef PENSTOCK_TRANSPORT_GRPC_INTERNAL_ERRORS_H_
#define PENSTOCK_TRANSPORT_GRPC_INTERNAL_ERRORS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/core/lib/gprpp/status_helper.h"
#include "src/core/lib/iomgr/error.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

inline grpc_error_handle ErrorWithCode(absl::string_view text,
                                       grpc_status_code code) {
  return grpc_error_set_int(GRPC_ERROR_CREATE(std::string(text)),
                            grpc_core::StatusIntProperty::kRpcStatus, code);
}

inline grpc_error_handle ToError(const absl::Status& status) {
  return ErrorWithCode(status.message(),
                       static_cast<grpc_status_code>(status.code()));
}

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_INTERNAL_ERRORS_H_
