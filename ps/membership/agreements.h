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

// Records `model` as the training's model if none is recorded. Returns
// FAILED_PRECONDITION, with the remedy, if another model is recorded. Compares
// bytes.
absl::Status AgreeOnModel(Registry* registry, const std::string& model);
absl::StatusOr<absl::optional<std::string>> ReadModel(Registry* registry);

// Returns the newest view, or nullopt if there is no view yet.
absl::StatusOr<absl::optional<v1::View>> ReadView(Registry* registry);
// Records `next` as the newest view. The number of `next` must be one above
// that of the newest view. The first view has the number 1. Fails with:
//   ABORTED              another process has made a view of this number or a
//                        later one: read that view, and decide again
//   ABORTED              a condition of `guard` does not hold: the caller has
//                        lost its registration, or must read again and decide
//   FAILED_PRECONDITION  the number skips views
absl::Status AdvanceView(
    Registry* registry, const v1::View& next,
    const absl::optional<Registry::Guard>& guard = absl::nullopt);

// Returns the newest complete checkpoint, or nullopt if there is none.
absl::StatusOr<absl::optional<v1::Cut>> ReadCut(Registry* registry);
// Records a checkpoint that all servers have written. Returns
// FAILED_PRECONDITION if a later checkpoint of the same run is recorded.
absl::Status RecordCut(Registry* registry, const v1::Cut& cut);

// The newest view that this process has seen. Not thread-safe.
class NewestView {
 public:
  // Stores a view that was read from etcd. If the number goes back, or if two
  // views with the same number differ, returns DATA_LOSS and keeps the previous
  // view. Either case means that etcd was restored from a backup, or that its
  // answers are wrong.
  absl::Status Take(const v1::View& view);
  // Returns the newest view. Before the first view, returns a view with the
  // number 0.
  const v1::View& view() const { return view_; }

 private:
  v1::View view_;
};

}  // namespace penstock::ps::membership

#endif  // PENSTOCK_PS_MEMBERSHIP_AGREEMENTS_H_
