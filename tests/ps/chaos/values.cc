#include "tests/ps/chaos/values.h"

#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "ps/client/reader.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {
namespace {

std::vector<float> Elements(const tensor::Tensor& tensor) {
  std::vector<float> elements(tensor.num_elements());
  std::memcpy(elements.data(), tensor.bytes().data(), tensor.byte_size());
  return elements;
}

}  // namespace

absl::Status AwaitApplied(const TrainingConnection::Channels& servers) {
  std::set<std::pair<uint64_t, uint64_t>> beginnings;  // pairs of run and step
  for (const auto& server : servers) {
    auto report = Describe(server, absl::Seconds(10));
    while (report.ok() && report->held_bytes() > 0) {
      report = Describe(server, absl::Seconds(10));
    }
    if (!report.ok()) return report.status();
    beginnings.insert({report->run(), report->restored_step()});
  }
  if (beginnings.size() == 1) return absl::OkStatus();
  return absl::InternalError("the servers have different trainings");
}

absl::StatusOr<ClusterValues> ReadValues(
    const std::shared_ptr<const TrainingConnection>& connection,
    size_t policies, const std::vector<RecordedPush>& pushes) {
  PullSpec spec;
  for (size_t policy = 0; policy < policies; ++policy) {
    spec.rows.push_back({absl::StrCat("r", policy), {}});
    std::vector<uint64_t>& all = spec.rows.back().ids;
    for (const RecordedPush& push : pushes) {
      const auto& ids = push.ids[policy];
      all.insert(all.end(), ids.begin(), ids.end());
    }
  }
  Reader reader(connection);
  const auto pulled = reader.Pull(0, spec, absl::Seconds(30));
  if (!pulled.ok()) return pulled.status();
  ClusterValues values;
  values.rows.resize(policies);
  for (size_t policy = 0; policy < policies; ++policy) {
    const auto dense = pulled->Dense(absl::StrCat("d", policy));
    if (!dense.ok()) return dense.status();
    values.dense.push_back(Elements(*dense));
    const std::vector<float> rows = Elements(pulled->Rows(policy));
    for (size_t at = 0; at < rows.size(); ++at) {
      values.rows[policy][spec.rows[policy].ids[at]] = rows[at];
    }
  }
  return values;
}

}  // namespace penstock::ps
