// A step of one sparse table.

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

// The rows of the pushes that are applied as one. Refers to them: they outlive
// it, and stay where they are.
class RowStep {
 public:
  // Adds up the rows of each id in the order of the pushes, of which there is
  // one at least, and divides them by the number of pushes. Of a single push
  // nothing is copied. Returns RESOURCE_EXHAUSTED if there is no memory; the
  // pushes are as they were then.
  static absl::StatusOr<RowStep> MeanOf(std::vector<RowGradients*> pushes,
                                        size_t dim,
                                        const sparse::HashKey& hash);

  absl::Span<const uint64_t> ids() const { return ids_; }  // each once
  absl::Span<const float> values() const { return values_; }
  // Returns what the pushes have reserved, which they have no more then.
  sparse::Reservation TakeReserved();

 private:
  explicit RowStep(std::vector<RowGradients*> pushes)
      : pushes_(std::move(pushes)) {}

  std::vector<RowGradients*> pushes_;
  absl::Span<const uint64_t> ids_;
  absl::Span<const float> values_;
  // Of several pushes: what those refer to.
  sparse::UniqueOfLists unique_;
  std::unique_ptr<float[]> means_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_ROW_STEP_H_
