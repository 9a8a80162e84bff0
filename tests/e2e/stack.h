// One server and its channels in this process, over one path. Public gRPC only.

#ifndef PENSTOCK_TESTS_E2E_STACK_H_
#define PENSTOCK_TESTS_E2E_STACK_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/channel_arguments.h"
#include "tests/e2e/path.h"

namespace penstock::e2e {

// Failures are the running test's. Calls on a channel may come from any thread,
// the rest is for the test's own.
class Stack {
 public:
  using Configure = std::function<void(grpc::ServerBuilder*)>;

  explicit Stack(Path path);
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  // For servers and channels made later; insecure where it is not called.
  void Secure(std::shared_ptr<grpc::ServerCredentials> server,
              std::shared_ptr<grpc::ChannelCredentials> channel);

  // Serves `service`, which must outlive the server, on a free port; on the
  // same one when called again. `configure` may add to the builder.
  void Serve(grpc::Service* service, const Configure& configure = {});
  // Ends the server; calls that still run get `grace` to finish.
  void StopServing(std::chrono::milliseconds grace);

  // A channel with connections of its own.
  std::shared_ptr<grpc::Channel> NewChannel(
      grpc::ChannelArguments arguments = {}) const;
  // The first use makes it.
  std::shared_ptr<grpc::Channel> channel();

  // `channel` has one connection, over this stack's path, and over it went as
  // many messages; these are known only where Penstock carries them.
  void ExpectTraffic(grpc::Channel& channel, uint64_t sent,
                     uint64_t received) const;
  void ExpectTraffic(uint64_t sent, uint64_t received) {
    ExpectTraffic(*channel(), sent, received);
  }
  // The same without the numbers, where they are not determined.
  void ExpectPath(grpc::Channel& channel) const;

  Path path() const { return path_; }
  std::string address() const;
  grpc::Server* server() { return server_.get(); }

 private:
  const Path path_;
  std::shared_ptr<grpc::ServerCredentials> server_credentials_;
  std::shared_ptr<grpc::ChannelCredentials> channel_credentials_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  int port_ = 0;
  int reservation_ = -1;  // a socket that keeps the port
};

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_STACK_H_
