#include "ps/reader.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ps/ps.pb.h"
#include "tensor_service/message.h"

namespace penstock::ps {

Reader::Reader(std::vector<std::shared_ptr<grpc::Channel>> servers,
               std::vector<VariableSpec> variables)
    : variables_(std::move(variables)), calls_(std::move(servers)) {}

absl::StatusOr<Reader::Pulled> Reader::Pull(uint64_t min_version,
                                            absl::Duration timeout) {
  v1::PullRequest request;
  request.set_min_version(min_version);
  auto replies = calls_.Call("Pull", request, timeout);
  if (!replies.ok()) return replies.status();
  Pulled pulled{UINT64_MAX, {}};
  std::map<std::string, tensor::Tensor> by_name;
  for (const grpc::ByteBuffer& bytes : *replies) {
    tensor::Message<v1::PullHeader> message;
    absl::Status status = tensor::Decode(bytes, &message);
    if (!status.ok()) return status;
    pulled.version = std::min(pulled.version, message.header.version());
    for (tensor::NamedTensor& named : message.bundle.tensors) {
      by_name[named.name] = std::move(named.tensor);
    }
  }
  for (const VariableSpec& spec : variables_) {
    auto found = by_name.find(spec.name);
    if (found == by_name.end() || found->second.dtype() != spec.dtype ||
        found->second.shape() != spec.shape) {
      return absl::FailedPreconditionError(absl::StrCat(
          "pull: variable ", spec.name, " is ",
          found == by_name.end() ? "missing" : found->second.ToString(),
          ", expected ", tensor::Describe(spec.dtype, spec.shape)));
    }
    pulled.variables.tensors.push_back({spec.name, found->second});
  }
  return pulled;
}

absl::StatusOr<Reader::Progress> Reader::Describe(absl::Duration timeout) {
  auto replies = calls_.Call("Describe", v1::DescribeRequest(), timeout);
  if (!replies.ok()) return replies.status();
  Progress progress{true, UINT64_MAX, 0};
  for (const grpc::ByteBuffer& bytes : *replies) {
    v1::ServerReport report;
    absl::Status status = tensor::ToProto(bytes, &report);
    if (!status.ok()) return status;
    progress.initialized = progress.initialized && report.initialized();
    progress.version = std::min(progress.version, report.version());
    progress.live_workers =
        std::max(progress.live_workers, report.live_workers());
  }
  return progress;
}

}  // namespace penstock::ps
