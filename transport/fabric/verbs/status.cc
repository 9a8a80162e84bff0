#include "transport/fabric/verbs/status.h"

#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "transport/base/status_util.h"
#include "transport/fabric/verbs/locked_memory.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// Returns the user's known remedy for an errno of the verbs.
const char* RemedyFor(int error_number) {
  switch (error_number) {
    case ENOMEM:
    case EAGAIN:
      return kLockedMemoryRemedy;
    case EPERM:
    case EACCES:
      return "/dev/infiniband must be readable and writable";
    case ENODEV:
      return "is the device still there? (rdma link)";
    default:
      return "";
  }
}

// Reasons of InfiniBand's connection manager (IBTA 12.6.7.2), which the status
// of a reject contains. Other reasons do not occur here.
constexpr int kInvalidServiceId = 8;
constexpr int kConsumerDefined = 28;

}  // namespace

absl::Status CallFailed(Api* api, int error_number, absl::string_view operation,
                        ibv_context* device) {
  std::string what(operation);
  if (device != nullptr) {
    absl::StrAppend(&what, " on ", api->GetDeviceName(device->device));
  }
  absl::Status status = base::ErrnoStatus(error_number, what);
  const std::string remedy = RemedyFor(error_number);
  if (remedy.empty()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), "; ", remedy));
}

absl::Status CompletionStatus(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return absl::OkStatus();
    case IBV_WC_RETRY_EXC_ERR:
    case IBV_WC_RESP_TIMEOUT_ERR:
      return absl::UnavailableError(
          "the peer's device does not answer (transport retries exceeded)");
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return absl::UnavailableError(
          "the peer takes no more packets (receiver-not-ready retries "
          "exceeded)");
    case IBV_WC_WR_FLUSH_ERR:
      return absl::UnavailableError("the queue pair has been shut down");
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR:
    case IBV_WC_REM_INV_RD_REQ_ERR:
    case IBV_WC_REM_ABORT_ERR:
      return absl::UnavailableError(
          "the peer's device refused an access to its memory");
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_LOC_EEC_OP_ERR:
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
    case IBV_WC_LOC_RDD_VIOL_ERR:
    case IBV_WC_MW_BIND_ERR:
    case IBV_WC_BAD_RESP_ERR:
    case IBV_WC_INV_EECN_ERR:
    case IBV_WC_INV_EEC_STATE_ERR:
    case IBV_WC_FATAL_ERR:
    case IBV_WC_GENERAL_ERR:
    case IBV_WC_TM_ERR:
    case IBV_WC_TM_RNDV_INCOMPLETE:
      break;
  }
  return absl::InternalError(
      absl::StrCat("the device reports error ", static_cast<int>(status)));
}

metrics::Completion CompletionLabel(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_LOC_LEN_ERR:
      return metrics::Completion::kLocLenErr;
    case IBV_WC_LOC_QP_OP_ERR:
      return metrics::Completion::kLocQpOpErr;
    case IBV_WC_LOC_PROT_ERR:
      return metrics::Completion::kLocProtErr;
    case IBV_WC_WR_FLUSH_ERR:
      return metrics::Completion::kWrFlushErr;
    case IBV_WC_MW_BIND_ERR:
      return metrics::Completion::kMwBindErr;
    case IBV_WC_BAD_RESP_ERR:
      return metrics::Completion::kBadRespErr;
    case IBV_WC_LOC_ACCESS_ERR:
      return metrics::Completion::kLocAccessErr;
    case IBV_WC_REM_INV_REQ_ERR:
      return metrics::Completion::kRemInvReqErr;
    case IBV_WC_REM_ACCESS_ERR:
      return metrics::Completion::kRemAccessErr;
    case IBV_WC_REM_OP_ERR:
      return metrics::Completion::kRemOpErr;
    case IBV_WC_RETRY_EXC_ERR:
      return metrics::Completion::kRetryExcErr;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return metrics::Completion::kRnrRetryExcErr;
    case IBV_WC_REM_ABORT_ERR:
      return metrics::Completion::kRemAbortErr;
    case IBV_WC_RESP_TIMEOUT_ERR:
      return metrics::Completion::kRespTimeoutErr;
    case IBV_WC_FATAL_ERR:
      return metrics::Completion::kFatalErr;
    case IBV_WC_GENERAL_ERR:
      return metrics::Completion::kGeneralErr;
    default:
      return metrics::Completion::kOther;
  }
}

absl::Status CmStatus(rdma_cm_event_type event, int status) {
  switch (event) {
    case RDMA_CM_EVENT_ADDR_ERROR:
      return absl::UnavailableError(
          "the peer's RDMA address cannot be resolved from here");
    case RDMA_CM_EVENT_ROUTE_ERROR:
      return absl::UnavailableError("no RDMA route to the peer");
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_CONNECT_ERROR:
      return absl::UnavailableError(
          "the peer's RDMA address does not answer (is UDP port 4791 open?)");
    case RDMA_CM_EVENT_REJECTED:
      if (status == kConsumerDefined) {
        return absl::PermissionDeniedError(
            "the peer refused: it waits for no such token, or is of another "
            "version");
      }
      return absl::UnavailableError(absl::StrCat(
          "the peer's connection manager refused (reason ", status,
          status == kInvalidServiceId ? ": nobody listens there)" : ")"));
    case RDMA_CM_EVENT_DISCONNECTED:
      return absl::UnavailableError("the peer closed its queue pair");
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      return absl::UnavailableError("the RDMA device was removed");
    case RDMA_CM_EVENT_ADDR_CHANGE:
      return absl::UnavailableError("the RDMA device's address has changed");
    default:
      return absl::UnavailableError(
          absl::StrCat("the connection manager reports event ",
                       static_cast<int>(event), ", status ", status));
  }
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
