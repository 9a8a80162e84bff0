// The gRPC service of a ps::Server.

#ifndef PENSTOCK_PS_SERVICE_SERVICE_H_
#define PENSTOCK_PS_SERVICE_SERVICE_H_

#include <functional>
#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "ps/access/access.h"
#include "ps/server/checkpoint_writer.h"
#include "ps/server/server.h"
#include "ps/shards/shards.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

struct ServiceOptions {
  // Decides which calls a peer may make. Must outlive the gRPC server. Null:
  // every peer may make every call.
  Access* access = nullptr;
  // Writes checkpoints. Must outlive the service. Null if the server has no
  // folder for checkpoints.
  CheckpointWriter* checkpoints = nullptr;
  // The replicas of shards, including this server's own shard. Must outlive the
  // service. Null: the server has no replicas, and handles the calls itself.
  Shards* shards = nullptr;
  // Returns the newest view, for GetView(). Must be thread-safe and not block.
  // Empty if shards are not replicated.
  std::function<v1::GetViewReply()> view = nullptr;
};

// Creates a service. Pass the ServerBuilder to
// tensor::AllowUnlimitedMessages(), and then register the service. `server`
// must outlive the gRPC server. Waiting pushes and pulls occupy no thread.
//
// To stop:
//   1. Call server->Drain(), which ends every wait. With replicas, first call
//      shards->Stop().
//   2. Call grpc::Server::Shutdown() with a deadline, which cancels the streams
//      of workers that have not left.
std::unique_ptr<grpc::Service> MakeService(Server* server,
                                           ServiceOptions options = {});

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_SERVICE_H_
