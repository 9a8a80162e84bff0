// The server of one (transport, API), in any process.

#ifndef PENSTOCK_BENCH_RPC_SERVER_SERVER_H_
#define PENSTOCK_BENCH_RPC_SERVER_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/rpc/message/cell.h"
#include "bench/rpc/recording/recording.h"
#include "bench/rpc/setup/options.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"

namespace penstock {
namespace bench {

// Offers the service of service.h through one of gRPC's three server APIs. Call
// in this order: Register(), grpc's BuildAndStart, Start(), grpc's Shutdown,
// Drain().
class ServiceHost {
 public:
  virtual ~ServiceHost() = default;

  // Adds the service, and completion queues if the API has them. The server
  // that `builder` starts must not outlive this object.
  virtual void Register(grpc::ServerBuilder* builder) = 0;

  // Starts serving. Returns immediately.
  virtual void Start() {}

  // Blocks until all threads of this object have ended.
  virtual void Drain() {}
};

std::unique_ptr<ServiceHost> MakeSyncHost();
// Makes a host with `threads` threads that wait on one completion queue.
std::unique_ptr<ServiceHost> MakeAsyncHost(int threads);
std::unique_ptr<ServiceHost> MakeCallbackHost();
// Makes a host that answers the calls of a recording, through the blocking API.
std::unique_ptr<ServiceHost> MakeReplayHost(
    std::shared_ptr<const Recording> recording);

// A started server. The destructor ends its calls and waits for its threads.
class Server {
 public:
  // Starts a server. Only the async API uses options.threads; see
  // MakeAsyncHost(). Returns UNAVAILABLE if it cannot listen on the port.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const RunOptions& options, Transport transport, Api api);
  ~Server();

  // Returns the address for CreateChannel, or an empty string for inproc.
  const std::string& address() const { return address_; }
  grpc::Server* grpc_server() { return server_.get(); }

 private:
  Server() = default;

  std::unique_ptr<ServiceHost> host_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_SERVER_SERVER_H_
