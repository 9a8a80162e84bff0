// Agreements of the members of a training, by etcd.

#ifndef PENSTOCK_PS_MEMBERSHIP_AGREEMENTS_H_
#define PENSTOCK_PS_MEMBERSHIP_AGREEMENTS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ps/membership/membership.pb.h"
#include "ps/membership/registry.h"

namespace penstock::ps::membership {

// All functions block, are thread-safe, and return Registry's errors. Calling
// one again with the same arguments changes nothing.

// Makes `model` the training's model, unless the training has one. Returns
// FAILED_PRECONDITION, with the remedy, if it has another one. Compares bytes.
absl::Status AgreeOnModel(Registry* registry, const std::string& model);
absl::StatusOr<absl::optional<std::string>> ReadModel(Registry* registry);

// Returns the newest view, or nothing before the first one.
absl::StatusOr<absl::optional<v1::View>> ReadView(Registry* registry);
// Makes `next` the newest view. The number of `next` must be that of the newest
// view plus one; the first is 1. Returns ABORTED if another process made a view
// of this number or a later one: read that one, and decide anew. Returns
// FAILED_PRECONDITION if the number skips views. With `guard`, the caller's
// registration must still hold (ABORTED).
absl::Status AdvanceView(
    Registry* registry, const v1::View& next,
    const absl::optional<Registry::Guard>& guard = absl::nullopt);

// Returns the newest good checkpoint, if there is one.
absl::StatusOr<absl::optional<v1::Cut>> ReadCut(Registry* registry);
// Records a checkpoint that all servers have written. Returns
// FAILED_PRECONDITION if a later one of the same run is recorded.
absl::Status RecordCut(Registry* registry, const v1::Cut& cut);

// The newest view that this process has seen. Not thread-safe.
class NewestView {
 public:
  // Takes a view that was read from etcd. Returns DATA_LOSS, and keeps the
  // former view, if the number goes back or if the decision of a number has
  // changed: then etcd was restored from a backup, or lies.
  absl::Status Take(const v1::View& view);
  // Returns a view with the number 0 before the first one.
  const v1::View& view() const { return view_; }

 private:
  v1::View view_;
};

}  // namespace penstock::ps::membership

#endif  // PENSTOCK_PS_MEMBERSHIP_AGREEMENTS_H_
