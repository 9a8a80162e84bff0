#include "collectives/schedule/builder.h"

#include <algorithm>
#include <vector>

#include "collectives/schedule/blocks.h"
#include "collectives/schedule/schedule.h"

namespace penstock::collectives {

void Builder::Send(int peer, const Range& range) {
  Add(Action::Kind::kSend, peer, range);
}

void Builder::Receive(int peer, const Range& range) {
  Add(Action::Kind::kReceive, peer, range);
}

void Builder::Reduce(int peer, const Range& range) {
  Add(peer < seat_.rank ? Action::Kind::kReduceLeft
                        : Action::Kind::kReduceRight,
      peer, range);
}

void Builder::SendBlocks(int peer, int first, int number) {
  AddBlocks(Action::Kind::kSend, peer, first, number);
}

void Builder::ReceiveBlocks(int peer, int first, int number) {
  AddBlocks(Action::Kind::kReceive, peer, first, number);
}

void Builder::Add(Action::Kind kind, int peer, const Range& range) {
  if (range.count == 0) return;
  Action action;
  action.step = step_;
  action.peer = peer;
  action.kind = kind;
  action.range = range;
  schedule_.push_back(action);
}

void Builder::AddBlocks(Action::Kind kind, int peer, int first, int number) {
  first = Wrap(first, seat_.ranks);
  const int until_end = std::min(number, seat_.ranks - first);
  Add(kind, peer, BlocksOf(first, until_end, seat_.ranks, count_));
  Add(kind, peer, BlocksOf(0, number - until_end, seat_.ranks, count_));
}

void Append(Schedule* schedule, const Schedule& more,
            const std::vector<int>& members) {
  const int first = schedule->empty() ? 0 : schedule->back().step + 1;
  for (Action action : more) {
    action.step += first;
    action.peer = members[action.peer];
    schedule->push_back(action);
  }
}

void Append(Schedule* schedule, const Schedule& more) {
  const int first = schedule->empty() ? 0 : schedule->back().step + 1;
  for (Action action : more) {
    action.step += first;
    schedule->push_back(action);
  }
}

}  // namespace penstock::collectives
