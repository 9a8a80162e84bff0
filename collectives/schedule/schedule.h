// The part of one rank in a collective operation: the ranges that it sends to
// each peer, and those that it reduces.

#ifndef PENSTOCK_COLLECTIVES_SCHEDULE_SCHEDULE_H_
#define PENSTOCK_COLLECTIVES_SCHEDULE_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "collectives/schedule/blocks.h"
#include "collectives/schedule/plan.h"

namespace penstock::collectives {

// One message, as seen by one of its two ranks. The k-th send from rank a to
// rank b matches the k-th receive at b from a. Both have equal counts.
struct Action {
  enum class Kind : uint8_t {
    kSend,
    // Overwrites the range.
    kReceive,
    // Replaces the range by op(received, range).
    kReduceLeft,
    // Replaces the range by op(range, received).
    kReduceRight,
  };
  // The buffer of the range. Only all_to_all has a second buffer: sends read
  // kInput, and receives write kData.
  enum class Buffer : uint8_t { kData, kInput };

  int step = 0;
  int peer = 0;
  Kind kind = Kind::kSend;
  Buffer buffer = Buffer::kData;
  Range range;
};

// The actions of a rank, ordered by step. The steps of different ranks are
// numbered independently: a rank begins a step when its previous step has
// ended.
//
// All messages of a step are sent and received concurrently. A step ends when
// all its messages have arrived. A send carries the bytes that the buffer had
// at the beginning of the step: received bytes are written to the buffer, in
// the order of the actions, only after every send of the step was read.
//
// A barrier's messages have no elements. Other operations skip empty messages.
using Schedule = std::vector<Action>;

// Returns the schedule of `rank`. Call only if CheckPlan() accepts `plan`.
//
// Buffers before and after, with block r as in blocks.h:
//   all_reduce      each rank's addend      the sum, bit-equal on all ranks
//   reduce_scatter  each rank's addend      block r of rank r: the sum
//   all_gather      block r of rank r       all blocks
//   broadcast       the root's values       the root's values
//   reduce          each rank's addend      at the root: the sum
//   gather          block r of rank r       at the root: all blocks
//   scatter         the root's values       block r of rank r
//   all_to_all      kInput                  block r of rank p: block p of r
// Other parts of a buffer may be overwritten.
//
// The order of a sum depends on the plan and the element's position alone.
Schedule MakeSchedule(const Plan& plan, int rank);

// Returns the number of elements from the beginning of kData that the schedule
// reads or writes. A rank without a buffer has to provide this much memory.
int64_t ExtentOf(const Schedule& schedule);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_SCHEDULE_SCHEDULE_H_
