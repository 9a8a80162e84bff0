#include "ps/client/fanout.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "ps/wire/shard_key.h"

namespace penstock::ps {
namespace {

constexpr char kService[] = "/penstock.ps.v1.ParameterServer/";

// Returns the server's own message, without the prefix "/SERVICE/METHOD at
// PEER: " that CallQueue adds. A peer's name has no blanks.
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

std::vector<tensor::CallQueue::Result> Fanout::Ask(
    const std::string& method, const std::vector<grpc::ByteBuffer>& requests,
    absl::Duration timeout) {
  for (size_t i = 0; i < requests.size(); ++i) {
    calls_.Start(servers_[i], method, requests[i], timeout);
  }
  return calls_.Wait();
}

std::vector<tensor::CallQueue::Result> Fanout::AskByRoutes(
    const std::string& method, const std::vector<grpc::ByteBuffer>& requests,
    absl::Duration timeout) const {
  std::vector<std::unique_ptr<tensor::CallQueue>> queues;
  for (size_t i = 0; i < requests.size(); ++i) {
    queues.push_back(std::make_unique<tensor::CallQueue>(interrupted_));
    const std::string shard = routes_[i]->shard();
    if (!shard.empty()) queues.back()->AddMetadata(kShardKey, shard);
    queues.back()->Start(routes_[i]->channel(), method, requests[i], timeout);
  }
  std::vector<tensor::CallQueue::Result> results;
  results.reserve(queues.size());
  for (const auto& queue : queues) {
    results.push_back(std::move(queue->Wait().front()));
  }
  return results;
}

absl::StatusOr<std::vector<grpc::ByteBuffer>> Fanout::Call(
    const std::string& method, const std::vector<grpc::ByteBuffer>& requests,
    absl::Duration timeout) {
  const std::string path = absl::StrCat(kService, method);
  std::vector<grpc::ByteBuffer> replies;
  for (tensor::CallQueue::Result& result :
       routes_.empty() ? Ask(path, requests, timeout)
                       : AskByRoutes(path, requests, timeout)) {
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
