#include "ps/client/fanout.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock::ps {
namespace {

constexpr char kService[] = "/penstock.ps.v1.ParameterServer/";

// Returns the server's own message: removes the prefix "/SERVICE/METHOD at
// PEER: " of CallQueue. A peer's name has no blanks.
absl::string_view WithoutCall(absl::string_view message) {
  if (!absl::StartsWith(message, kService)) return message;
  const size_t end = message.find(": ");
  return end == absl::string_view::npos ? message : message.substr(end + 2);
}

}  // namespace

absl::Status Fanout::Explain(size_t server, const absl::Status& error) const {
  if (!names_.empty()) {
    return absl::Status(
        error.code(),
        absl::StrCat(names_[server], ": ", WithoutCall(error.message())));
  }
  if (servers_.size() == 1) return error;
  return absl::Status(error.code(),
                      absl::StrCat("server ", server, ": ", error.message()));
}

absl::StatusOr<std::vector<grpc::ByteBuffer>> Fanout::Call(
    const std::string& method, const std::vector<grpc::ByteBuffer>& requests,
    absl::Duration timeout) {
  for (size_t i = 0; i < requests.size(); ++i) {
    calls_.Start(servers_[i], absl::StrCat(kService, method), requests[i],
                 timeout);
  }
  std::vector<grpc::ByteBuffer> replies;
  for (tensor::CallQueue::Result& result : calls_.Wait()) {
    if (!result.status.ok()) return Explain(replies.size(), result.status);
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
