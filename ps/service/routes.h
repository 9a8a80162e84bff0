// Finds the server that handles a call, if the process has replicas of several
// shards.

#ifndef PENSTOCK_PS_SERVICE_ROUTES_H_
#define PENSTOCK_PS_SERVICE_ROUTES_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "ps/model/model.h"
#include "ps/server/calls.h"
#include "ps/server/checkpoint_writer.h"
#include "ps/server/server.h"
#include "ps/service/attend.h"
#include "ps/shards/shards.h"

namespace penstock::ps {

// The servers of a process. A call names its shard in its metadata; see
// shard_key.h. Without replicas, one server handles all calls. Thread-safe.
class Routes {
 public:
  // `writer` is null without a folder for checkpoints, and `shards` without
  // replicas. The pointers outlive this object.
  Routes(Server* server, CheckpointWriter* writer, Shards* shards);

  // CallsOf() returns the object that handles calls for the shard of a call.
  // ServerOf() returns the server with the values of that shard. Both return
  // INVALID_ARGUMENT for metadata that is not a number, and the errors of
  // Shards.
  absl::StatusOr<std::shared_ptr<Calls>> CallsOf(
      const grpc::CallbackServerContext& context) const;
  absl::StatusOr<std::shared_ptr<Server>> ServerOf(
      const grpc::CallbackServerContext& context) const;
  // Returns a function that returns CallsOf(context) each time it is called.
  FindServer FinderOf(const grpc::CallbackServerContext& context) const;

  // Returns the shard that a call addresses. A worker has one stream of
  // heartbeats for each shard. A call that names no shard addresses the
  // server's own shard. Returns nullopt if the training has no replicas.
  absl::optional<uint32_t> ShardOf(
      const grpc::CallbackServerContext& context) const;

  absl::Status CheckMayDefine(uint64_t replaces) const;
  // Locks the folder of checkpoints for the training that a chief is about to
  // define. Does nothing if there is no folder, or if a primary of the training
  // already has the lock.
  absl::Status ClaimFolder(uint64_t replaces) const;
  // Returns INVALID_ARGUMENT for a model that cannot have replicas.
  absl::Status CheckModel(const Model& model) const;
  // Returns the checkpoint writer of a call's shard, or null if there is no
  // folder.
  absl::StatusOr<std::shared_ptr<CheckpointWriter>> WriterOf(
      const grpc::CallbackServerContext& context) const;
  // Returns the replica that leads a call's shard; null without replicas.
  absl::StatusOr<std::shared_ptr<Shard>> LeaderOf(
      const grpc::CallbackServerContext& context) const;

  // Returns the reactor of a message from another server.
  grpc::ServerUnaryReactor* Replicate(const grpc::ByteBuffer& request,
                                      grpc::ByteBuffer* reply) const;

 private:
  // The process's server and writer, which serve all calls if `shards_` is
  // null. Not owned, despite the type.
  const std::shared_ptr<Server> direct_;
  const std::shared_ptr<CheckpointWriter> direct_writer_;
  Shards* const shards_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVICE_ROUTES_H_
