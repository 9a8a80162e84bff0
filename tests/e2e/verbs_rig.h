// What the tests of verbs share: a server and channels in this process, over
// the devices of tools/rdma-vm. Calls go to 127.0.0.1 and RDMA to 10.9.0.x, so
// that links can die under the one and not under the other.

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
#include "tests/vm/vm_test.h"
#include "transport/penstock.h"

namespace penstock::e2e {

// verbs where it can be had, at `device`, or at any if that is empty.
Options VerbsAt(const std::string& device = "");
// The same, but nothing else will do.
Options OnlyVerbsAt(const std::string& device = "");
Options OnlyTcp();

// What the shell command writes, without the end of its last line. The running
// test fails where the command does.
std::string Shell(const std::string& command);

// Whether `condition` holds before the time is up; it is asked again and again.
bool Await(std::chrono::seconds time, const std::function<bool()>& condition);

// Of the one connection of a channel; empty where there is none, or several.
PathReport PathOf(grpc::Channel* channel);

// Failures are the running test's.
class VerbsRig : public VmTest {
 protected:
  VerbsRig();
  ~VerbsRig() override;

  // On a free port.
  void Serve(grpc::Service* service, const Options& options,
             std::shared_ptr<grpc::ServerCredentials> credentials =
                 grpc::InsecureServerCredentials());
  void StopServing();

  // With connections of its own.
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
