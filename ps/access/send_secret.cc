#include "ps/access/send_secret.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/client_context.h"
#include "ps/access/secrets.h"

namespace penstock::ps {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::Interceptor;

class AddSecret final : public ClientInterceptorFactoryInterface {
 public:
  explicit AddSecret(const std::string& secret)
      : authorization_(absl::StrCat("Bearer ", secret)) {}

  // Adds the secret to the call's metadata. gRPC calls this function when it
  // makes the call, before the metadata is sent. Returns null, which means "no
  // interceptor for this call".
  Interceptor* CreateClientInterceptor(ClientRpcInfo* call) override {
    call->client_context()->AddMetadata("authorization", authorization_);
    return nullptr;
  }

 private:
  const std::string authorization_;
};

}  // namespace

absl::StatusOr<std::string> ReadSecretToSend(const std::string& path) {
  if (path.empty()) return "";
  absl::StatusOr<std::vector<std::string>> secrets = ReadSecrets(path);
  if (!secrets.ok()) return secrets.status();
  return std::move(secrets->front());
}

InterceptorFactories SendSecret(const std::string& secret) {
  InterceptorFactories factories;
  if (!secret.empty()) factories.push_back(std::make_unique<AddSecret>(secret));
  return factories;
}

}  // namespace penstock::ps
