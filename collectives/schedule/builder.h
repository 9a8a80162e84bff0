// Builds the schedule of a rank step by step.

#ifndef PENSTOCK_COLLECTIVES_SCHEDULE_BUILDER_H_
#define PENSTOCK_COLLECTIVES_SCHEDULE_BUILDER_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "collectives/schedule/algorithms.h"
#include "collectives/schedule/blocks.h"
#include "collectives/schedule/schedule.h"

namespace penstock::collectives {

class Builder {
 public:
  Builder(const Seat& seat, int64_t count) : seat_(seat), count_(count) {}

  // Add an action to the current step, except for an empty range.
  void Send(int peer, const Range& range);
  void Receive(int peer, const Range& range);
  // Reduces with the lower rank's operand on the left.
  void Reduce(int peer, const Range& range);

  // Add actions for `number` blocks, starting at block `first` modulo the rank
  // count. A sequence of blocks that wraps around results in two actions.
  void SendBlocks(int peer, int first, int number);
  void ReceiveBlocks(int peer, int first, int number);

  // Ends the current step.
  void NextStep() { ++step_; }

  Schedule Take() { return std::move(schedule_); }

 private:
  void Add(Action::Kind kind, int peer, const Range& range);
  void AddBlocks(Action::Kind kind, int peer, int first, int number);

  const Seat seat_;
  const int64_t count_;
  int step_ = 0;
  Schedule schedule_;
};

// Returns `value` modulo `ranks`, for values from -ranks on.
inline int Wrap(int value, int ranks) { return (value + ranks) % ranks; }

// Appends the steps of `more` after those of `schedule`. Peer p of `more` is
// rank members[p].
void Append(Schedule* schedule, const Schedule& more,
            const std::vector<int>& members);
// Appends the steps of `more`, whose peers are ranks.
void Append(Schedule* schedule, const Schedule& more);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_SCHEDULE_BUILDER_H_
