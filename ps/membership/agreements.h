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

// All functions block, are thread-safe, and return Registry's errors. A
// repeated call with the same arguments changes nothing.

// Makes `model` the training's model, unless the training has one. Returns
// FAILED_PRECONDITION, with the remedy, if it has another one. Compares bytes.
absl::Status AgreeOnModel(Registry* registry, const std::string& model);
absl::StatusOr<absl::optional<std::string>> ReadModel(Registry* registry);

// Returns the newest view, or nothing before the first one.
absl::StatusOr<absl::optional<v1::View>> ReadView(Registry* registry);
// Makes `next` the newest view. `next` must have the number of the newest view
// plus one; the first number is 1. Fails with:
//   ABORTED              another process has made a view of this number or a
//                        later one: read that view, and decide again
//   ABORTED              a condition of `guard` does not hold: the caller has
//                        lost its registration, or must read again and decide
//   FAILED_PRECONDITION  the number skips views
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
  // Takes a view that was read from etcd. If the number goes back, or if two
  // views of one number differ, returns DATA_LOSS and keeps the former view:
  // etcd was restored from a backup, or its answers are wrong.
  absl::Status Take(const v1::View& view);
  // Returns the newest view. Before the first one, returns a view with the
  // number 0.
  const v1::View& view() const { return view_; }

 private:
  v1::View view_;
};

}  // namespace penstock::ps::membership

#endif  // PENSTOCK_PS_MEMBERSHIP_AGREEMENTS_H_
