#include "transport/grpc/handshake/refusing_credentials.h"

#include <grpc/grpc.h>

#include <utility>
#include <vector>

#include "grpcpp/channel.h"
#include "grpcpp/support/channel_arguments.h"
#include "grpcpp/support/client_interceptor.h"
#include "src/cpp/client/create_channel_internal.h"

namespace penstock {
namespace core {
namespace {

using Interceptors = std::vector<
    std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>;

class Refusing final : public grpc::ChannelCredentials {
 public:
  explicit Refusing(std::string why) : why_(std::move(why)) {}

 private:
  grpc::SecureChannelCredentials* AsSecureCredentials() override {
    return nullptr;
  }
  std::shared_ptr<grpc::Channel> CreateChannelImpl(
      const std::string& target, const grpc::ChannelArguments& args) override {
    return CreateChannelWithInterceptors(target, args, Interceptors());
  }
  std::shared_ptr<grpc::Channel> CreateChannelWithInterceptors(
      const std::string& target, const grpc::ChannelArguments&,
      Interceptors interceptors) override {
    return grpc::CreateChannelInternal(
        "",
        grpc_lame_client_channel_create(
            target.c_str(), GRPC_STATUS_FAILED_PRECONDITION, why_.c_str()),
        std::move(interceptors));
  }

  const std::string why_;
};

}  // namespace

std::shared_ptr<grpc::ChannelCredentials> RefusingCredentials(std::string why) {
  return std::make_shared<Refusing>(std::move(why));
}

}  // namespace core
}  // namespace penstock
