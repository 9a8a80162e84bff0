// Functions that gRPC's programs call after put_over_penstock.py has patched
// their sources.

#ifndef PENSTOCK_TESTS_GRPC_END2END_OVER_PENSTOCK_H_
#define PENSTOCK_TESTS_GRPC_END2END_OVER_PENSTOCK_H_

#include <memory>
#include <string>

#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "test/cpp/util/test_credentials_provider.h"

namespace penstock {

inline std::shared_ptr<grpc::ChannelCredentials> TestCredentials(
    const std::string& type, grpc::ChannelArguments* arguments) {
  return Credentials(
      grpc::testing::GetCredentialsProvider()->GetChannelCredentials(
          type, arguments));
}

inline std::unique_ptr<grpc::ServerBuilder> NewServerBuilder() {
  auto builder = std::make_unique<grpc::ServerBuilder>();
  Enable(builder.get());
  return builder;
}

inline std::shared_ptr<grpc::ChannelCredentials> InsecureCredentials() {
  return Credentials(grpc::InsecureChannelCredentials());
}

}  // namespace penstock

#endif  // PENSTOCK_TESTS_GRPC_END2END_OVER_PENSTOCK_H_
