#include "examples/common/connection.h"

#include "absl/strings/str_join.h"
#include "grpcpp/create_channel.h"
#include "penstock/penstock.h"
#include "ps/access/send_secret.h"
#include "tensor_service/status.h"

namespace penstock::examples {

std::vector<std::shared_ptr<grpc::Channel>> Connect(
    const std::vector<std::string>& servers,
    const std::shared_ptr<grpc::ChannelCredentials>& security,
    const std::string& secret, bool stock) {
  Options options;
  if (stock) options.policy = Policy::kOff;
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  channels.reserve(servers.size());
  for (const std::string& server : servers) {
    channels.push_back(grpc::experimental::CreateCustomChannelWithInterceptors(
        server, Credentials(security, options), tensor::UnlimitedMessages(),
        ps::SendSecret(secret)));
  }
  return channels;
}

std::function<std::shared_ptr<grpc::Channel>(const std::string&)> Connector(
    const std::shared_ptr<grpc::ChannelCredentials>& security,
    const std::string& secret, bool stock) {
  return [security, secret, stock](const std::string& address) {
    return Connect({address}, security, secret, stock).front();
  };
}

std::string DescribePath(grpc::Channel& channel) {
  std::vector<PathReport> paths = DescribePaths(channel);
  if (paths.empty()) return "http2";
  return absl::StrJoin(
      paths, " + ", [](std::string* out, const PathReport& report) {
        // For HTTP/2, append only the path, without the reason for using it.
        out->append(report.path == "http2" ? report.path : report.ToString());
      });
}

}  // namespace penstock::examples
