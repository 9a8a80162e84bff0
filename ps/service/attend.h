// The stream by which a worker shows that it lives.

#ifndef PENSTOCK_PS_SERVICE_ATTEND_H_
#define PENSTOCK_PS_SERVICE_ATTEND_H_

#include "absl/status/status.h"
#include "grpcpp/support/server_callback.h"
#include "ps/server/server.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

// Serves one Attend() call, unless `allowed` is an error, which ends it. The
// reactor deletes itself.
grpc::ServerReadReactor<v1::Heartbeat>* ServeAttend(
    Server* server, const absl::Status& allowed);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_ATTEND_H_
