#include "ps/server/row_step.h"

#include <new>

#include "absl/strings/str_cat.h"
#include "ps/server/row_tensors.h"

namespace penstock::ps {
namespace {

absl::Status NoMemory(size_t pushes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("there is no memory for the mean of ", pushes,
                   " pushes: give less to tables, or more to the server"));
}

}  // namespace

absl::StatusOr<RowStep> RowStep::MeanOf(std::vector<RowGradients*> pushes,
                                        size_t dim,
                                        const sparse::HashKey& hash) {
  RowStep step(std::move(pushes));
  const std::vector<RowGradients*>& all = step.pushes_;
  if (all.size() == 1) {
    step.ids_ = all[0]->ids;
    step.values_ = FloatsOf(all[0]->values);
    return step;
  }
  std::vector<absl::Span<const uint64_t>> lists(all.size());
  for (size_t i = 0; i < all.size(); ++i) lists[i] = all[i]->ids;
  auto unique = sparse::FindUniqueOfLists(lists, hash);
  if (!unique.has_value()) return NoMemory(all.size());
  step.unique_ = *std::move(unique);
  const size_t elements = step.unique_.count * dim;
  step.means_.reset(new (std::nothrow) float[elements]);
  if (step.means_ == nullptr) return NoMemory(all.size());
  const absl::Span<float> means(step.means_.get(), elements);
  const uint32_t* row_of = step.unique_.row_of.get();
  size_t seen = 0;
  for (const RowGradients* each : all) {
    seen = sparse::AddRows({row_of, each->ids.size()}, FloatsOf(each->values),
                           dim, seen, means);
    row_of += each->ids.size();
  }
  const auto count = static_cast<float>(all.size());
  for (float& value : means) value /= count;
  step.ids_ = {step.unique_.ids.get(), step.unique_.count};
  step.values_ = means;
  return step;
}

sparse::Reservation RowStep::TakeReserved() {
  sparse::Reservation reserved = std::move(pushes_[0]->reserved);
  for (size_t i = 1; i < pushes_.size(); ++i) {
    // Ignore the status: Merge() cannot fail, because all reservations are of
    // this table.
    (void)reserved.Merge(std::move(pushes_[i]->reserved));
  }
  return reserved;
}

}  // namespace penstock::ps
