// Makes the same call to the primaries of all shards, and repeats it.

#ifndef PENSTOCK_PS_CLIENT_PATIENT_FANOUT_H_
#define PENSTOCK_PS_CLIENT_PATIENT_FANOUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps/client/route.h"

namespace penstock::ps {

// Calls the primaries of all shards at the same time. Repeats each call as
// PatientCall does, at the primary of that moment. Returns the replies in the
// order of the shards, or the first error in that order, which begins with the
// shard's entry of `names`, or with its number without names. Blocks until the
// last shard has answered or `timeout` is over.
absl::StatusOr<std::vector<grpc::ByteBuffer>> CallPatiently(
    const std::vector<Route*>& shards, const std::vector<std::string>& names,
    const std::string& method, const google::protobuf::MessageLite& request,
    absl::Duration timeout);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_PATIENT_FANOUT_H_
