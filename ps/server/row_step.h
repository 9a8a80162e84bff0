// Combines the pushes for one sparse table into one step.

#ifndef PENSTOCK_PS_SERVER_ROW_STEP_H_
#define PENSTOCK_PS_SERVER_ROW_STEP_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ps/server/gradients.h"
#include "ps/sparse/deduplicate.h"
#include "ps/sparse/hash.h"
#include "ps/sparse/reservation.h"

namespace penstock::ps {

// The mean of the rows of several pushes, applied as one step. Refers to the
// pushes, which must outlive the RowStep and must not move.
class RowStep {
 public:
  // Returns the mean of the pushes: adds up the rows of each id in the order of
  // the pushes, and divides each sum by the number of pushes. Requires at least
  // one push. Copies nothing if there is one push. Returns RESOURCE_EXHAUSTED
  // if there is no memory; the pushes are then unchanged.
  static absl::StatusOr<RowStep> MeanOf(std::vector<RowGradients*> pushes,
                                        size_t dim,
                                        const sparse::HashKey& hash);

  absl::Span<const uint64_t> ids() const { return ids_; }  // each once
  absl::Span<const float> values() const { return values_; }
  // Moves the reservations out of the pushes, and returns them merged.
  sparse::Reservation TakeReserved();

 private:
  explicit RowStep(std::vector<RowGradients*> pushes)
      : pushes_(std::move(pushes)) {}

  std::vector<RowGradients*> pushes_;
  absl::Span<const uint64_t> ids_;
  absl::Span<const float> values_;
  // The memory of ids_ and values_ if there are several pushes; otherwise
  // unused.
  sparse::UniqueOfLists unique_;
  std::unique_ptr<float[]> means_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_ROW_STEP_H_
