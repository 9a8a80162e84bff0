#include <algorithm>
#include <cstdint>

#include "collectives/schedule/algorithms.h"
#include "collectives/schedule/blocks.h"
#include "collectives/schedule/builder.h"
#include "collectives/schedule/schedule.h"

namespace penstock::collectives {
namespace {

// Calls send(peer, place, number) and receive(peer, place, number) for each
// edge of this rank in a binomial tree. Places are ranks counted from the root.
// An edge leads to the subtree of `number` places that begins at `place`.
template <typename Send, typename Receive, typename NextStep>
void WalkTree(const Seat& seat, int root, const Send& send,
              const Receive& receive, const NextStep& next_step) {
  const int place = Wrap(seat.rank - root, seat.ranks);
  int distance = 1;
  while (distance < seat.ranks) distance *= 2;
  while ((distance /= 2) > 0) {
    const int inside = place % (2 * distance);
    const int other = inside == 0 ? place + distance : place;
    const int number = std::min(distance, seat.ranks - other);
    if (inside == 0 && number > 0) {
      send(Wrap(other + root, seat.ranks), other, number);
    } else if (inside == distance) {
      receive(Wrap(place - distance + root, seat.ranks), other, number);
    }
    next_step();
  }
}

}  // namespace

Schedule BinomialBroadcast(const Seat& seat, int root, int64_t count) {
  Builder builder(seat, count);
  const Range all = {0, count};
  WalkTree(
      seat, root, [&](int peer, int, int) { builder.Send(peer, all); },
      [&](int peer, int, int) { builder.Receive(peer, all); },
      [&] { builder.NextStep(); });
  return builder.Take();
}

Schedule BinomialScatter(const Seat& seat, int root, int64_t count) {
  Builder builder(seat, count);
  WalkTree(
      seat, root,
      [&](int peer, int place, int number) {
        builder.SendBlocks(peer, place + root, number);
      },
      [&](int peer, int place, int number) {
        builder.ReceiveBlocks(peer, place + root, number);
      },
      [&] { builder.NextStep(); });
  return builder.Take();
}

Schedule ChainBroadcast(const Seat& seat, int root, int64_t count,
                        int segments) {
  Builder builder(seat, count);
  const int place = Wrap(seat.rank - root, seat.ranks);
  // Receives a segment and sends the previous segment in the same step.
  for (int step = 0; step <= segments; ++step) {
    if (place > 0 && step < segments) {
      builder.Receive(Wrap(seat.rank - 1, seat.ranks),
                      BlockOf(step, segments, count));
    }
    if (place + 1 < seat.ranks && step > 0) {
      builder.Send(Wrap(seat.rank + 1, seat.ranks),
                   BlockOf(step - 1, segments, count));
    }
    builder.NextStep();
  }
  return builder.Take();
}

Schedule ScatterAllGather(const Seat& seat, int root, int64_t count) {
  Schedule schedule = BinomialScatter(seat, root, count);
  Append(&schedule, BruckAllGather(seat, count));
  return schedule;
}

Schedule DisseminationBarrier(const Seat& seat) {
  Schedule schedule;
  int step = 0;
  for (int distance = 1; distance < seat.ranks; distance *= 2, ++step) {
    Action action;
    action.step = step;
    action.peer = Wrap(seat.rank + distance, seat.ranks);
    schedule.push_back(action);
    action.peer = Wrap(seat.rank - distance, seat.ranks);
    action.kind = Action::Kind::kReceive;
    schedule.push_back(action);
  }
  return schedule;
}

}  // namespace penstock::collectives
