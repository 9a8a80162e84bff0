#include "ps/client/patient_fanout.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/blocking_counter.h"
#include "ps/client/call_loop.h"
#include "ps/client/patient_call.h"
#include "tensor_service/calls.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

constexpr char kService[] = "/penstock.ps.v1.ParameterServer/";

}  // namespace

absl::StatusOr<std::vector<grpc::ByteBuffer>> CallPatiently(
    const std::vector<Route*>& shards, const std::vector<std::string>& names,
    const std::string& method, const google::protobuf::MessageLite& request,
    absl::Duration timeout) {
  const absl::Time deadline = base::SteadyNow() + timeout;
  std::vector<CallLoop::Reply> replies(shards.size(),
                                       absl::UnknownError("no answer"));
  {
    absl::BlockingCounter left(static_cast<int>(shards.size()));
    CallLoop loop;
    for (size_t i = 0; i < shards.size(); ++i) {
      CallLoop::Request call{nullptr,
                             absl::StrCat(kService, method),
                             tensor::FromProto(request),
                             deadline,
                             nullptr,
                             shards[i]};
      PatientCall::Start(&loop, std::move(call), /*rejoin=*/nullptr,
                         [&, i](CallLoop::Reply reply, int) {
                           replies[i] = std::move(reply);
                           left.DecrementCount();
                         });
    }
    left.Wait();
  }
  std::vector<grpc::ByteBuffer> bytes;
  for (size_t i = 0; i < replies.size(); ++i) {
    const absl::Status& status = replies[i].status();
    if (!status.ok()) {
      return absl::Status(
          status.code(),
          absl::StrCat(names.empty() ? absl::StrCat("shard ", i) : names[i],
                       ": ", status.message()));
    }
    bytes.push_back(*std::move(replies[i]));
  }
  return bytes;
}

}  // namespace penstock::ps
