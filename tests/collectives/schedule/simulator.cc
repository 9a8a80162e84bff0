#include "tests/collectives/schedule/simulator.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collectives/schedule/schedule.h"

namespace penstock::collectives {
namespace {

using Buffers = std::vector<std::vector<Element>>;
using Kind = Action::Kind;

struct Rank {
  Schedule schedule;
  size_t begin = 0;  // first action of the current step
  size_t end = 0;
  size_t left = 0;  // actions of the step whose message is still to be moved
  std::vector<std::vector<Element>> received;
  // The time at which the step began, and the earliest possible time of its
  // end. Time is counted in steps, in moved elements, and in reduced elements.
  int64_t step_begun = 0, step_ends = 0;
  int64_t serial_begun = 0, serial_ends = 0;
  int64_t reduced_begun = 0, reduced_ends = 0;
  // The numbers of elements that were sent, received and reduced in the step. A
  // rank handles its elements one after another.
  int64_t sent = 0, got = 0, reduced = 0;
};

// The actions of one rank that wait for a matching action of another rank.
struct Link {
  std::deque<size_t> sends;
  std::deque<size_t> receives;
};

class Simulation {
 public:
  Simulation(int count, Buffers* data, const Buffers& input)
      : data_(data), input_(input), ranks_(count) {}

  Ran Run(const std::function<Schedule(int)>& schedule_of) {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      ranks_[rank].schedule = schedule_of(static_cast<int>(rank));
      ready_.push_back(rank);
    }
    while (!ready_.empty() && ran_.error.empty()) {
      const size_t rank = ready_.back();
      ready_.pop_back();
      Begin(rank);
    }
    if (ran_.error.empty()) CheckEnd();
    return ran_;
  }

 private:
  void Fail(size_t rank, const std::string& reason) {
    if (!ran_.error.empty()) return;
    const Rank& at = ranks_[rank];
    const int step =
        at.begin < at.schedule.size() ? at.schedule[at.begin].step : -1;
    ran_.error = absl::StrCat("rank ", rank, ", step ", step, ": ", reason);
  }

  const std::vector<Element>& BufferOf(size_t rank, const Action& action) {
    return action.buffer == Action::Buffer::kInput ? input_[rank]
                                                   : (*data_)[rank];
  }

  void Begin(size_t rank) {
    Rank& at = ranks_[rank];
    at.begin = at.end;
    if (at.begin == at.schedule.size()) return;
    const int step = at.schedule[at.begin].step;
    while (at.end < at.schedule.size() && at.schedule[at.end].step == step) {
      ++at.end;
    }
    at.left = at.end - at.begin;
    at.received.assign(at.left, {});
    at.sent = at.got = at.reduced = 0;
    CheckRanges(rank);
    if (!ran_.error.empty()) return;
    for (size_t i = at.begin, end = at.end; i < end; ++i) Post(rank, i);
  }

  void CheckRanges(size_t rank) {
    const Rank& at = ranks_[rank];
    if (at.end < at.schedule.size() &&
        at.schedule[at.end].step < at.schedule[at.begin].step) {
      Fail(rank, "steps are out of order");
    }
    std::vector<std::pair<int64_t, int64_t>> written;
    for (size_t i = at.begin; i < at.end; ++i) {
      const Action& action = at.schedule[i];
      const int64_t end = action.range.begin + action.range.count;
      if (action.range.begin < 0 || action.range.count < 0 ||
          end > static_cast<int64_t>(BufferOf(rank, action).size())) {
        Fail(rank, absl::StrCat("a range ends at ", end));
      }
      if (action.kind != Kind::kSend) {
        written.emplace_back(action.range.begin, end);
      }
    }
    std::sort(written.begin(), written.end());
    for (size_t i = 1; i < written.size(); ++i) {
      if (written[i].first < written[i - 1].second) {
        Fail(rank, "two receives write one range");
      }
    }
  }

  void Post(size_t rank, size_t index) {
    const Action& action = ranks_[rank].schedule[index];
    const auto peer = static_cast<size_t>(action.peer);
    if (peer >= ranks_.size()) return Fail(rank, "a peer does not exist");
    if (action.kind == Kind::kSend) {
      Link& link = links_[rank * ranks_.size() + peer];
      link.sends.push_back(index);
      Match(rank, peer, &link);
    } else {
      Link& link = links_[peer * ranks_.size() + rank];
      link.receives.push_back(index);
      Match(peer, rank, &link);
    }
  }

  void Match(size_t from, size_t to, Link* link) {
    if (link->sends.empty() || link->receives.empty()) return;
    const size_t send = link->sends.front(), receive = link->receives.front();
    link->sends.pop_front();
    link->receives.pop_front();
    Rank& sender = ranks_[from];
    Rank& receiver = ranks_[to];
    const Action& action = sender.schedule[send];
    const int64_t count = action.range.count;
    if (receiver.schedule[receive].range.count != count) {
      return Fail(to, absl::StrCat("receives another count than rank ", from,
                                   " sends"));
    }
    const std::vector<Element>& source = BufferOf(from, action);
    const auto first = source.begin() + action.range.begin;
    receiver.received[receive - receiver.begin].assign(first, first + count);
    Count(from == to, count, &sender, &receiver);
    if (receiver.schedule[receive].kind != Kind::kReceive) {
      receiver.reduced += count;
    }
    receiver.reduced_ends =
        std::max(receiver.reduced_ends,
                 std::max(sender.reduced_begun, receiver.reduced_begun) +
                     receiver.reduced);
    sender.reduced_ends = std::max(sender.reduced_ends, sender.reduced_begun);
    // Decrements both counts before comparing, because sender and receiver may
    // be the same rank.
    const bool sender_done = --sender.left == 0;
    const bool receiver_done = --receiver.left == 0;
    if (sender_done) End(from);
    if (receiver_done && from != to) End(to);
    if (receiver_done && from == to) End(to);
  }

  void Count(bool to_itself, int64_t count, Rank* sender, Rank* receiver) {
    if (to_itself) return;
    ran_.total += count;
    const int64_t step = std::max(sender->step_begun, receiver->step_begun) + 1;
    sender->sent += count;
    receiver->got += count;
    const int64_t serial =
        std::max(sender->serial_begun, receiver->serial_begun) +
        std::max(sender->sent, receiver->got);
    for (Rank* each : {sender, receiver}) {
      each->step_ends = std::max(each->step_ends, step);
      each->serial_ends = std::max(each->serial_ends, serial);
    }
  }

  void End(size_t rank) {
    Rank& at = ranks_[rank];
    for (size_t i = at.begin; i < at.end; ++i) {
      Apply(at.schedule[i], at.received[i - at.begin], &(*data_)[rank]);
    }
    at.step_begun = at.step_ends;
    at.serial_begun = at.serial_ends;
    at.reduced_begun = at.reduced_ends;
    ran_.steps = std::max(ran_.steps, at.step_ends);
    ran_.serial = std::max(ran_.serial, at.serial_ends);
    ran_.reduced = std::max(ran_.reduced, at.reduced_ends);
    ready_.push_back(rank);
  }

  static void Apply(const Action& action, const std::vector<Element>& received,
                    std::vector<Element>* data) {
    for (size_t i = 0; i < received.size(); ++i) {
      Element& mine = (*data)[action.range.begin + i];
      if (action.kind == Kind::kReceive) mine = received[i];
      if (action.kind == Kind::kReduceLeft) mine = Combine(received[i], mine);
      if (action.kind == Kind::kReduceRight) mine = Combine(mine, received[i]);
    }
  }

  void CheckEnd() {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].left > 0) return Fail(rank, "waits for ever");
    }
  }

  Buffers* const data_;
  const Buffers& input_;
  std::vector<Rank> ranks_;
  std::unordered_map<size_t, Link> links_;
  std::vector<size_t> ready_;  // the step of both has ended
  Ran ran_;
};

}  // namespace

Element Combine(const Element& left, const Element& right) {
  const uint64_t order =
      (left.order * 0x9e3779b97f4a7c15 + right.order) ^ (right.order >> 29);
  return {left.sum + right.sum, order * 0xbf58476d1ce4e5b9 ^ (order >> 32)};
}

Ran Simulate(const Plan& plan, Buffers* data, const Buffers& input) {
  return Simulate(
      plan.ranks, [&](int rank) { return MakeSchedule(plan, rank); }, data,
      input);
}

Ran Simulate(int ranks, const std::function<Schedule(int)>& schedule_of,
             Buffers* data, const Buffers& input) {
  return Simulation(ranks, data, input).Run(schedule_of);
}

}  // namespace penstock::collectives
