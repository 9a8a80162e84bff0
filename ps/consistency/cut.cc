#include "ps/consistency/cut.h"

#include <algorithm>
#include <utility>

namespace penstock::ps {

uint64_t CutPoint::ClockOf(uint32_t rank) const {
  if (version.has_value()) return *version;
  const auto found = std::find_if(
      clocks.begin(), clocks.end(),
      [&](const RankClock& each) { return each.worker.rank == rank; });
  return found == clocks.end() ? 0 : found->clock;
}

// Returns the cut of all begun pushes. With a synchronous table, a begun push
// is in the cut only if its whole step is in the cut.
CutPoint FirstCutOf(const std::vector<HeldSteps>& servers,
                    bool is_synchronous) {
  uint64_t version = 0;
  std::map<uint32_t, RankClock> highest;
  for (const HeldSteps& server : servers) {
    version = std::max(version, server.version);
    for (const RankClock& begun : server.begun) {
      version = std::max(version, begun.clock);
      RankClock& of_rank =
          highest.insert({begun.worker.rank, begun}).first->second;
      if (begun.clock > of_rank.clock) of_rank = begun;
    }
  }
  CutPoint cut;
  if (is_synchronous) {
    cut.version = version;
  } else {
    for (const auto& [rank, clock] : highest) cut.clocks.push_back(clock);
  }
  return cut;
}

CutGate::CutGate(const std::vector<RankClock>& restored) {
  for (const RankClock& each : restored) {
    begun_[each.worker.rank] = each.clock;
  }
}

void CutGate::OpenUpTo(CutPoint cut) {
  cut_ = std::move(cut);
  state_ = State::kUpTo;
}

bool CutGate::IsPast(const CutPoint& cut) const {
  return std::any_of(begun_.begin(), begun_.end(), [&cut](const auto& begun) {
    return begun.second > cut.ClockOf(begun.first);
  });
}

bool CutGate::LetsThrough(const PushId& push) const {
  switch (state_) {
    case State::kOpen:
      return true;
    case State::kClosed:
      return false;
    case State::kUpTo:
      return push.clock < cut_.ClockOf(push.rank);
  }
  return true;
}

void CutGate::Note(const PushId& push) {
  uint64_t& begun = begun_[push.rank];
  begun = std::max(begun, push.clock + 1);
}

std::vector<RankClock> CutGate::begun() const {
  std::vector<RankClock> clocks;
  clocks.reserve(begun_.size());
  for (const auto& [rank, clock] : begun_) {
    clocks.push_back({{rank, 0}, clock});
  }
  return clocks;
}

}  // namespace penstock::ps
