// The server of one (transport, API), in whichever process it is made.

#ifndef PENSTOCK_BENCH_RPC_SERVER_H_
#define PENSTOCK_BENCH_RPC_SERVER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "bench/rpc/cell.h"
#include "bench/rpc/options.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"

namespace penstock {
namespace bench {

// The service of service.h through one of gRPC's three server APIs. Order:
// Register(), grpc's BuildAndStart, Start(), grpc's Shutdown, Drain().
class ServiceHost {
 public:
  virtual ~ServiceHost() = default;

  // Adds the service, and completion queues if the API has them. `builder`
  // must not start a server that outlives this object.
  virtual void Register(grpc::ServerBuilder* builder) = 0;

  // Begins to serve; returns at once.
  virtual void Start() {}

  // Returns when no thread of this object runs any more.
  virtual void Drain() {}
};

std::unique_ptr<ServiceHost> MakeSyncHost();
// `threads` wait on the one completion queue.
std::unique_ptr<ServiceHost> MakeAsyncHost(int threads);
std::unique_ptr<ServiceHost> MakeCallbackHost();

// A started server. Destruction ends its calls and waits for its threads.
class Server {
 public:
  // `threads` is a hint for the async API: see MakeAsyncHost(). UNAVAILABLE if
  // the port cannot be had.
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const RunOptions& options, Transport transport, Api api);
  ~Server();

  // What a client passes to CreateChannel; empty for inproc.
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

#endif  // PENSTOCK_BENCH_RPC_SERVER_H_
