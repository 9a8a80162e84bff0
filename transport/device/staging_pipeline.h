// Decides which chunk of a staged transfer may proceed. Does no I/O and reads
// no clock.

#ifndef PENSTOCK_TRANSPORT_DEVICE_STAGING_PIPELINE_H_
#define PENSTOCK_TRANSPORT_DEVICE_STAGING_PIPELINE_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"

namespace penstock {
namespace device {

// Moves chunks through several stages, in a few buffers called slots, so that
// all stages work at the same time. For example, one chunk is copied out of a
// device while the previous chunk is sent and an earlier chunk is copied into
// another device.
//
//   state     event               guard                     action
//   running   Start()             -                         begin steps
//   running   OnDone(stage)       a step of it is under way begin steps
//   running   Fail(error)         -                         -> ending
//   ending    OnDone(stage)       -                         none
//   any       nothing under way, and all chunks are
//             through or it is ending                       -> finished
//
// A step of a chunk begins when three conditions hold: its stage has begun all
// earlier chunks, the previous stage has ended this chunk, and, in the first
// stage, a slot is free. A chunk keeps its slot through all stages. A stage
// ends its steps in the order in which they began, like a stream of a device.
// Not thread-safe.
class StagingPipeline {
 public:
  struct Shape {
    size_t chunks = 0;
    int slots = 1;
    int stages = 2;
  };
  struct Step {
    int stage = 0;
    size_t chunk = 0;
    int slot = 0;

    friend bool operator==(const Step& a, const Step& b) {
      return a.stage == b.stage && a.chunk == b.chunk && a.slot == b.slot;
    }
  };
  using Steps = std::vector<Step>;

  // Requires at least one slot and one stage.
  explicit StagingPipeline(const Shape& shape);

  // Returns the steps to begin, of each stage in order. Call it once.
  Steps Start();
  // Records that the oldest step of `stage` has ended. Returns the steps to
  // begin now.
  Steps OnDone(int stage);
  // Stops beginning steps, because of an error. Keeps the first error.
  void Fail(absl::Status error);

  bool finished() const;
  // Returns true if a step of `stage` has begun and has not ended.
  bool is_busy(int stage) const { return begun_[stage] > ended_[stage]; }
  const absl::Status& error() const { return error_; }

 private:
  bool MayBegin(size_t stage) const;
  void BeginAll(Steps* steps);

  const Shape shape_;
  std::vector<size_t> begun_;  // by stage: how many chunks
  std::vector<size_t> ended_;
  absl::Status error_;
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_STAGING_PIPELINE_H_
