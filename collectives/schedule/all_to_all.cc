#include <cstdint>

#include "collectives/schedule/algorithms.h"
#include "collectives/schedule/blocks.h"
#include "collectives/schedule/builder.h"
#include "collectives/schedule/schedule.h"

namespace penstock::collectives {

Schedule PairwiseAllToAll(const Seat& seat, int64_t count) {
  Builder builder(seat, count);
  for (int distance = 0; distance < seat.ranks; ++distance) {
    const int to = Wrap(seat.rank + distance, seat.ranks);
    const int from = Wrap(seat.rank - distance, seat.ranks);
    builder.SendBlocks(to, to, 1);
    builder.ReceiveBlocks(from, from, 1);
    builder.NextStep();
  }
  Schedule schedule = builder.Take();
  for (Action& action : schedule) {
    if (action.kind == Action::Kind::kSend) {
      action.buffer = Action::Buffer::kInput;
    }
  }
  return schedule;
}

}  // namespace penstock::collectives
