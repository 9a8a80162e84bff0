// Converts between the service's messages and the types of Server.

#ifndef PENSTOCK_PS_SERVICE_CONVERT_H_
#define PENSTOCK_PS_SERVICE_CONVERT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps/server/report.h"
#include "ps/server/server.h"
#include "ps/wire/ps.pb.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

inline View ViewIn(const v1::View& view) { return {view.run(), view.epoch()}; }
inline WorkerId WorkerIn(const v1::WorkerId& worker) {
  return {worker.rank(), worker.incarnation()};
}

// Converts the header of a pull. Returns INVALID_ARGUMENT if a type for the
// values is set that is neither f16 nor bf16.
absl::StatusOr<Server::PullSpec> PullIn(const v1::PullHeader& header,
                                        tensor::Bundle ids);
// Encodes the answer to a pull. `waited` is the time that the pull waited.
absl::Status Answer(Server::Pulled pulled, absl::Duration waited,
                    grpc::ByteBuffer* reply);

template <typename Message>
void SetCut(const absl::optional<CutId>& cut, Message* message) {
  if (!cut.has_value()) return;
  message->mutable_cut()->set_step(cut->step);
  message->mutable_cut()->set_id(cut->id);
  message->mutable_cut()->set_run(cut->run);
  message->mutable_cut()->mutable_earlier_runs()->Assign(
      cut->earlier_runs.begin(), cut->earlier_runs.end());
}
// Returns the cut in a message. Returns INVALID_ARGUMENT if the cut has too
// many runs.
absl::StatusOr<CutId> CutIdIn(const v1::Cut& message);

v1::PushReply::Verdict ToMessage(Server::PushVerdict verdict);
v1::GetModelReply ToMessage(const Server::Training& training);
v1::ServerReport ToMessage(const ServerReport& report);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_CONVERT_H_
