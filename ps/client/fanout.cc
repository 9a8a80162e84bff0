#include "ps/client/fanout.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock::ps {
namespace {

constexpr char kService[] = "/penstock.ps.v1.ParameterServer/";

}  // namespace

absl::StatusOr<std::vector<grpc::ByteBuffer>> Fanout::Call(
    const std::string& method, const std::vector<grpc::ByteBuffer>& requests,
    absl::Duration timeout) {
  for (size_t i = 0; i < requests.size(); ++i) {
    calls_.Start(servers_[i], absl::StrCat(kService, method), requests[i],
                 timeout);
  }
  std::vector<grpc::ByteBuffer> replies;
  for (tensor::CallQueue::Result& result : calls_.Wait()) {
    if (!result.status.ok()) {
      if (servers_.size() == 1) return result.status;
      return absl::Status(result.status.code(),
                          absl::StrCat("server ", replies.size(), ": ",
                                       result.status.message()));
    }
    replies.push_back(std::move(result.reply));
  }
  return replies;
}

absl::StatusOr<std::vector<grpc::ByteBuffer>> Fanout::Call(
    const std::string& method, const google::protobuf::MessageLite& request,
    absl::Duration timeout) {
  return Call(method,
              std::vector<grpc::ByteBuffer>(servers_.size(),
                                            tensor::FromProto(request)),
              timeout);
}

}  // namespace penstock::ps
