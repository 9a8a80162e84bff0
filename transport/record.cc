#include "penstock/record.h"

#include <atomic>

#include "transport/grpc/handshake/server_setup.h"
#include "transport/record/recording_file.h"

namespace penstock {

absl::Status RecordCalls(const std::string& path) {
  static std::atomic<bool> records{false};
  absl::Status status = core::ServersAreHooked();
  if (!status.ok()) return status;
  if (records.exchange(true)) {
    return absl::FailedPreconditionError(
        "this process records its calls already");
  }
  status = record::RecordTo(path);
  if (!status.ok()) records = false;
  return status;
}

void FinishRecording() { record::FinishRecording(); }

}  // namespace penstock
