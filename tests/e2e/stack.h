// One server and its channels in this process, over one path. Uses gRPC's
// public API only.

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

// Failures fail the running test. Any thread may call on a channel; only the
// test's own thread may use the rest.
class Stack {
 public:
  using Configure = std::function<void(grpc::ServerBuilder*)>;

  explicit Stack(Path path);
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  // Sets the credentials of servers and channels that are made later. Without
  // it they are insecure.
  void Secure(std::shared_ptr<grpc::ServerCredentials> server,
              std::shared_ptr<grpc::ChannelCredentials> channel);

  // Serves `service`, which must outlive the server, on a free port; on the
  // same port when called again. `configure` may add to the builder.
  void Serve(grpc::Service* service, const Configure& configure = {});
  // Ends the server. Calls that still run have `grace` to finish.
  void StopServing(std::chrono::milliseconds grace);

  // Makes a channel with connections of its own.
  std::shared_ptr<grpc::Channel> NewChannel(
      grpc::ChannelArguments arguments = {}) const;
  // Returns the stack's own channel, which the first use makes.
  std::shared_ptr<grpc::Channel> channel();

  // Expects that `channel` has one connection, over this stack's path, and that
  // as many messages went over it. The numbers are checked only if Penstock
  // carries them.
  void ExpectTraffic(grpc::Channel& channel, uint64_t sent,
                     uint64_t received) const;
  void ExpectTraffic(uint64_t sent, uint64_t received) {
    ExpectTraffic(*channel(), sent, received);
  }
  // The same without the numbers, for tests in which they vary.
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
