// One server and its channels in this process, over one path. Uses only gRPC's
// public API.

#ifndef PENSTOCK_TESTS_E2E_STACK_H_
#define PENSTOCK_TESTS_E2E_STACK_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/channel_arguments.h"
#include "penstock/penstock.h"
#include "tests/e2e/path.h"

namespace penstock::e2e {

// A server and its channels. Failures fail the running test. Any thread may
// call on a channel; only the test's thread may use other functions.
class Stack {
 public:
  using Configure = std::function<void(grpc::ServerBuilder*)>;

  explicit Stack(Path path);
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  // Sets the credentials of servers and channels that are made later. The
  // default is insecure.
  void Secure(std::shared_ptr<grpc::ServerCredentials> server,
              std::shared_ptr<grpc::ChannelCredentials> channel);

  // Serves `service`, which must outlive the server, on a free port. Later
  // calls use the same port. `configure` may modify the builder.
  void Serve(grpc::Service* service, const Configure& configure = {});
  // Ends the server. Running calls have `grace` to finish.
  void StopServing(std::chrono::milliseconds grace);

  // Makes a channel with its own connections.
  std::shared_ptr<grpc::Channel> NewChannel(
      grpc::ChannelArguments arguments = {}) const;
  // Returns the stack's own channel, which is made on first use.
  std::shared_ptr<grpc::Channel> channel();

  // Expects that `channel` has one connection, over this stack's path. Expects
  // these numbers of carried messages if Penstock carries the messages.
  void ExpectTraffic(grpc::Channel& channel, uint64_t sent,
                     uint64_t received) const;
  void ExpectTraffic(uint64_t sent, uint64_t received) {
    ExpectTraffic(*channel(), sent, received);
  }
  // Expects the path only, for tests with varying numbers.
  void ExpectPath(grpc::Channel& channel) const;

  Path path() const { return path_; }
  std::string address() const;
  grpc::Server* server() { return server_.get(); }

 private:
  // Like ExpectPath(), for builds whose connections move to another path during
  // calls.
  void ExpectPathSoon(grpc::Channel& channel) const;
  // Returns true if all connections to this stack's server use its path.
  bool UsesPath(const std::vector<PathReport>& reports) const;

  const Path path_;
  std::shared_ptr<grpc::ServerCredentials> server_credentials_;
  std::shared_ptr<grpc::ChannelCredentials> channel_credentials_;
  std::unique_ptr<grpc::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  int port_ = 0;
  int reservation_ = -1;  // a socket that reserves the port
};

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_STACK_H_
