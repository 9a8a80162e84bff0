// The fixture of verbs tests: a server and channels in this process, over the
// devices of tools/rdma-vm. Calls use 127.0.0.1 and RDMA uses 10.9.0.x, so that
// a link failure affects only RDMA.

#ifndef PENSTOCK_TESTS_E2E_VERBS_RIG_H_
#define PENSTOCK_TESTS_E2E_VERBS_RIG_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "tests/vm/vm_test.h"

namespace penstock::e2e {

// Returns options that prefer verbs, at `device`, or at any device if empty.
Options VerbsAt(const std::string& device = "");
// Returns options that require verbs.
Options OnlyVerbsAt(const std::string& device = "");
Options OnlyTcp();

// Runs a shell command, and returns its output without the final newline. Fails
// the running test if the command fails.
std::string Shell(const std::string& command);

// Calls `condition` repeatedly. Returns true once the condition is true, or
// false after `time`.
bool Await(std::chrono::seconds time, const std::function<bool()>& condition);

// Returns the path of a channel's one connection, or an empty path if the
// number of connections is not one. Fails the running test if a verbs path uses
// windows in a test without windows, or none in a test with windows
// (tests/vm/windows.h).
PathReport PathOf(grpc::Channel* channel);

// The fixture. Failures fail the running test.
class VerbsRig : public VmTest {
 protected:
  VerbsRig();
  ~VerbsRig() override;

  // Serves on a free port.
  void Serve(grpc::Service* service, const Options& options,
             std::shared_ptr<grpc::ServerCredentials> credentials =
                 grpc::InsecureServerCredentials());
  // Serves on a free port. `add` modifies the builder.
  void Serve(const std::function<void(grpc::ServerBuilder*)>& add,
             const Options& options,
             std::shared_ptr<grpc::ServerCredentials> credentials =
                 grpc::InsecureServerCredentials());
  void StopServing();

  // Makes a channel with its own connections.
  std::shared_ptr<grpc::Channel> Connect(
      const Options& options,
      std::shared_ptr<grpc::ChannelCredentials> credentials =
          grpc::InsecureChannelCredentials()) const;

  std::string address() const;

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_VERBS_RIG_H_
