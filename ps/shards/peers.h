// Makes calls from one server to others.

#ifndef PENSTOCK_PS_SHARDS_PEERS_H_
#define PENSTOCK_PS_SHARDS_PEERS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/byte_buffer.h"

namespace penstock::ps {

// The connections to other servers with replicas. Thread-safe.
class Peers {
 public:
  using Callback = std::function<void(absl::StatusOr<grpc::ByteBuffer>)>;

  virtual ~Peers() = default;
  // Calls Replicate() at `server`, an address. Does not block. Calls `callback`
  // once, on any thread, perhaps within this call.
  virtual void Replicate(const std::string& server,
                         const grpc::ByteBuffer& request,
                         absl::Duration timeout, Callback callback) = 0;
  // Ends all calls with CANCELLED, and refuses later ones.
  virtual void Stop() = 0;
};

// Returns peers over gRPC. `connect` makes the secured channel to an address.
// Keeps one channel for each address.
std::unique_ptr<Peers> PeersOver(
    std::function<std::shared_ptr<grpc::Channel>(const std::string& server)>
        connect);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_PEERS_H_
