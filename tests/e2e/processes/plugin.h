// The interface of a shared library that contains Penstock, for a program
// without Penstock.

#ifndef PENSTOCK_TESTS_E2E_PROCESSES_PLUGIN_H_
#define PENSTOCK_TESTS_E2E_PROCESSES_PLUGIN_H_

#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/server_builder.h"

namespace penstock::e2e {

struct Plugin {
  void (*enable)(grpc::ServerBuilder*);
  std::shared_ptr<grpc::ChannelCredentials> (*credentials)(
      std::shared_ptr<grpc::ChannelCredentials>);
  // Returns the result of DescribePaths(), with one line per path.
  std::string (*describe)(grpc::Channel*);
};

// The library's only symbol: extern "C" const Plugin* GetPlugin().
constexpr char kGetPlugin[] = "GetPlugin";

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_PROCESSES_PLUGIN_H_
