// Makes the same call to all parameter servers concurrently.

#ifndef PENSTOCK_PS_CLIENT_FANOUT_H_
#define PENSTOCK_PS_CLIENT_FANOUT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/channel.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps/client/route.h"
#include "tensor_service/calls.h"

namespace penstock::ps {

// Calls a set of servers at the same time. Not thread-safe.
class Fanout {
 public:
  // Makes a fanout to `servers`. Errors begin with the server's name. Without
  // names, errors have the server's index if there are several servers, and
  // gRPC's description of the call. Call() cancels its calls once `interrupted`
  // returns true; see tensor::CallQueue. With `routes`, which must live as long
  // as the fanout, calls go to the present primaries of the shards.
  explicit Fanout(std::vector<std::shared_ptr<grpc::Channel>> servers,
                  std::vector<std::string> names = {},
                  std::function<bool()> interrupted = nullptr,
                  std::vector<Route*> routes = {})
      : servers_(std::move(servers)),
        names_(std::move(names)),
        routes_(std::move(routes)),
        interrupted_(std::move(interrupted)),
        calls_(interrupted_) {}

  // Sends requests[i] to server i. Takes one request for each server. Returns
  // the replies in the order of the servers, or the first error in that order.
  // Blocks until the last server has answered or `timeout` is over. Waits for
  // servers that are not up yet.
  absl::StatusOr<std::vector<grpc::ByteBuffer>> Call(
      const std::string& method, const std::vector<grpc::ByteBuffer>& requests,
      absl::Duration timeout);

  // Sends the same request to each server. Otherwise like the function above.
  absl::StatusOr<std::vector<grpc::ByteBuffer>> Call(
      const std::string& method, const google::protobuf::MessageLite& request,
      absl::Duration timeout);

  const std::vector<std::shared_ptr<grpc::Channel>>& servers() const {
    return servers_;
  }

 private:
  absl::Status Explain(size_t server, const absl::Status& error) const;
  std::vector<tensor::CallQueue::Result> Ask(
      const std::string& method, const std::vector<grpc::ByteBuffer>& requests,
      absl::Duration timeout);
  // Makes the calls by `routes_`. Each call has its own queue, because all
  // calls of a queue have the same metadata.
  std::vector<tensor::CallQueue::Result> AskByRoutes(
      const std::string& method, const std::vector<grpc::ByteBuffer>& requests,
      absl::Duration timeout) const;

  const std::vector<std::shared_ptr<grpc::Channel>> servers_;
  const std::vector<std::string> names_;
  const std::vector<Route*> routes_;  // empty if shards are not replicated
  const std::function<bool()> interrupted_;
  tensor::CallQueue calls_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_FANOUT_H_
