#include "ps/access/send_secret.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/client_context.h"
#include "ps/access/secrets.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::Interceptor;

class AddSecret final : public ClientInterceptorFactoryInterface {
 public:
  explicit AddSecret(SecretSource source) : source_(std::move(source)) {}

  // Adds the secret to the call's metadata. gRPC calls this function when it
  // makes the call, before the metadata is sent. Returns null, which means "no
  // interceptor for this call".
  Interceptor* CreateClientInterceptor(ClientRpcInfo* call) override {
    call->client_context()->AddMetadata("authorization",
                                        absl::StrCat("Bearer ", source_()));
    return nullptr;
  }

 private:
  const SecretSource source_;
};

// The secret of a file that may change. Thread-safe.
class FileSecret {
 public:
  FileSecret(std::string path, absl::Duration interval, std::string first)
      : path_(std::move(path)),
        interval_(interval),
        read_(base::SteadyNow()),
        secret_(std::move(first)) {}

  // Reads the file on one thread at a time. The others get the former secret
  // meanwhile, because a file may be on a server that does not answer.
  std::string Get() {
    {
      absl::MutexLock lock(&mu_);
      const absl::Time now = base::SteadyNow();
      if (is_reading_ || now - read_ < interval_) return secret_;
      is_reading_ = true;
    }
    absl::StatusOr<std::string> secret = ReadSecretToSend(path_);
    absl::MutexLock lock(&mu_);
    is_reading_ = false;
    read_ = base::SteadyNow();
    if (secret.ok()) secret_ = *std::move(secret);
    return secret_;
  }

 private:
  const std::string path_;
  const absl::Duration interval_;
  absl::Mutex mu_;
  absl::Time read_ ABSL_GUARDED_BY(mu_);  // the time of the last read
  bool is_reading_ ABSL_GUARDED_BY(mu_) = false;
  std::string secret_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

absl::StatusOr<std::string> ReadSecretToSend(const std::string& path) {
  if (path.empty()) return "";
  absl::StatusOr<std::vector<std::string>> secrets = ReadSecrets(path);
  if (!secrets.ok()) return secrets.status();
  return std::move(secrets->front());
}

absl::StatusOr<SecretSource> FollowSecret(const std::string& path,
                                          absl::Duration interval) {
  absl::StatusOr<std::string> first = ReadSecretToSend(path);
  if (!first.ok()) return first.status();
  if (path.empty()) return SecretSource();
  auto secret = std::make_shared<FileSecret>(path, interval, *std::move(first));
  return SecretSource([secret] { return secret->Get(); });
}

InterceptorFactories SendSecret(const std::string& secret) {
  if (secret.empty()) return {};
  return SendSecret([secret] { return secret; });
}

InterceptorFactories SendSecret(SecretSource source) {
  InterceptorFactories factories;
  if (source) {
    factories.push_back(std::make_unique<AddSecret>(std::move(source)));
  }
  return factories;
}

}  // namespace penstock::ps
