#include "ps/etcd/history.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock::ps::etcd {
namespace {

constexpr char kRemedy[] =
    ": etcd was wiped, or restored from a backup, or an address is that of "
    "another etcd. Bring the former etcd back; or restart all servers and "
    "workers with another prefix";

}  // namespace

int64_t History::floor() const {
  absl::MutexLock lock(&mu_);
  return revision_;
}

absl::Status History::Check(const etcdserverpb::ResponseHeader& header,
                            int64_t floor) {
  absl::MutexLock lock(&mu_);
  if (header.cluster_id() == 0) {
    return absl::DataLossError("the answer has no cluster id: is it an etcd?");
  }
  if (cluster_ != 0 && header.cluster_id() != cluster_) {
    return absl::DataLossError(absl::StrCat(
        "the answer is of cluster ", absl::Hex(header.cluster_id()),
        ", not of ", absl::Hex(cluster_), " as before", kRemedy));
  }
  if (header.revision() < floor) {
    return absl::DataLossError(
        absl::StrCat("the answer has revision ", header.revision(),
                     ", but revision ", floor, " was there already", kRemedy));
  }
  cluster_ = header.cluster_id();
  revision_ = std::max(revision_, header.revision());
  return absl::OkStatus();
}

}  // namespace penstock::ps::etcd
