#include "tests/ps/simulation/ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace penstock::ps {
namespace {

// Limits the length of a chain of trainings, in which each was restored from a
// checkpoint of the previous one. Far more than a run has.
constexpr int kMaxDepth = 100;

std::string NameOf(const Push& push) {
  return absl::StrCat("push ", push.number, " of worker ", push.rank);
}

uint64_t ClockOf(const checkpoint::CutRecord& cut, uint32_t rank) {
  if (cut.version.has_value()) return *cut.version;
  for (const checkpoint::WorkerClock& clock : cut.clocks) {
    if (clock.rank == rank) return clock.clock;
  }
  return 0;
}

}  // namespace

Push& Ledger::NewPush(uint32_t rank, uint64_t incarnation, uint64_t run) {
  const uint64_t number = pushes_.size() + 1;
  Push& push = pushes_[number];
  push.number = number;
  push.rank = rank;
  push.incarnation = incarnation;
  push.run = run;
  return push;
}

void Ledger::OnCounted(uint64_t push, Taken taken, bool is_inferred) {
  taken.is_inferred = is_inferred;
  pushes_.at(push).taken.push_back(taken);
}

bool Ledger::ConfirmCounted(uint64_t push, const Taken& taken) {
  for (Taken& each : pushes_.at(push).taken) {
    if (each.is_inferred && each.run == taken.run &&
        each.server == taken.server && each.node == taken.node) {
      each.is_inferred = false;
      return true;
    }
  }
  return false;
}

bool Ledger::HasCounted(uint64_t push, size_t server) const {
  const std::vector<Taken>& taken = pushes_.at(push).taken;
  return std::any_of(taken.begin(), taken.end(),
                     [&](const Taken& each) { return each.server == server; });
}

void Ledger::OnAcknowledged(uint64_t number) {
  Push& acknowledged = pushes_.at(number);
  acknowledged.is_acknowledged = true;
  for (auto& [other, push] : pushes_) {
    if (other < number && push.incarnation == acknowledged.incarnation &&
        push.run == acknowledged.run && push.is_acknowledged) {
      push.is_settled = true;
    }
  }
}

const Life* Ledger::FindLife(uint64_t run) const {
  const auto found = lives_.find(run);
  return found == lives_.end() ? nullptr : &found->second;
}

std::set<uint64_t> Ledger::SettledIn(uint64_t run) const {
  std::set<uint64_t> settled;
  for (const auto& [number, push] : pushes_) {
    if (push.run == run && push.is_settled) settled.insert(number);
  }
  return settled;
}

void Ledger::OnBegun(const CutId& cut, uint64_t run) {
  CutRecord& record = cuts_[KeyOf(cut)];
  record.order = cuts_.size();
  record.run = run;
  if (const Life* const life = FindLife(run)) record.nodes = life->nodes;
  record.required = SettledIn(run);
}

CutRecord* Ledger::FindCut(const CutId& cut) {
  const auto found = cuts_.find(KeyOf(cut));
  return found == cuts_.end() ? nullptr : &found->second;
}

uint64_t Ledger::ClockIn(const CutId& cut, uint32_t rank) const {
  const auto found = cuts_.find(KeyOf(cut));
  return found == cuts_.end() ? 0 : ClockOf(found->second.clocks, rank);
}

bool Ledger::IsInCut(const absl::optional<CutId>& cut, const Push& push,
                     const Taken& taken, int depth) const {
  if (!cut.has_value() || depth > kMaxDepth) return false;
  const auto found = cuts_.find(KeyOf(*cut));
  return found != cuts_.end() && IsInCut(found->second, push, taken, depth + 1);
}

bool Ledger::IsInCut(const CutRecord& cut, const Push& push, const Taken& taken,
                     int depth) const {
  if (cut.run == taken.run) {
    return taken.server < cut.nodes.size() &&
           cut.nodes[taken.server] == taken.node &&
           taken.clock < ClockOf(cut.clocks, push.rank);
  }
  const Life* const life = FindLife(cut.run);
  return life != nullptr && IsInCut(life->cut, push, taken, depth);
}

Ledger::Where Ledger::WhereIs(const Life& life, const Push& push,
                              const Taken& taken) const {
  if (taken.run == life.run) {
    const bool is_kept = taken.server < life.nodes.size() &&
                         life.nodes[taken.server] == taken.node;
    return is_kept ? Where::kCurrent : Where::kOut;
  }
  return IsInCut(life.cut, push, taken, 0) ? Where::kPast : Where::kOut;
}

std::vector<std::string> Ledger::CheckHas(
    const CutId& cut, const std::set<uint64_t>& pushes) const {
  std::vector<std::string> wrong;
  for (const uint64_t number : pushes) {
    const Push& push = pushes_.at(number);
    for (const Taken& taken : push.taken) {
      if (taken.run != push.run || IsInCut(cut, push, taken, 0)) continue;
      wrong.push_back(absl::StrCat(NameOf(push), ", of clock ", taken.clock,
                                   " at server ", taken.server,
                                   ", was applied before, and is not in the "
                                   "cut of step ",
                                   cut.step));
    }
  }
  return wrong;
}

std::vector<std::string> Ledger::CheckCut(const CutId& cut) const {
  const auto found = cuts_.find(KeyOf(cut));
  if (found == cuts_.end()) {
    return {absl::StrCat("the cut of step ", cut.step, " was never begun")};
  }
  std::vector<std::string> wrong = CheckHas(cut, found->second.required);
  for (const auto& [number, push] : pushes_) {
    if (!push.is_acknowledged || push.run != found->second.run) continue;
    size_t in = 0;
    size_t all = 0;
    for (const Taken& taken : push.taken) {
      if (taken.run != push.run) continue;
      ++all;
      if (IsInCut(cut, push, taken, 0)) ++in;
    }
    if (in == 0 || in == all) continue;
    wrong.push_back(absl::StrCat(NameOf(push), " is in the cut of step ",
                                 cut.step, " at ", in, " of ", all,
                                 " servers"));
  }
  return wrong;
}

std::vector<std::string> Ledger::CheckKept(uint64_t run) const {
  const Life* const life = FindLife(run);
  std::vector<std::string> wrong;
  for (const auto& [number, push] : pushes_) {
    if (push.run != run || !push.is_acknowledged) continue;
    for (size_t server = 0; server < push.servers(); ++server) {
      const auto kept = std::count_if(
          push.taken.begin(), push.taken.end(), [&](const Taken& taken) {
            return taken.server == server && taken.run == run &&
                   WhereIs(*life, push, taken) == Where::kCurrent;
          });
      if (kept == 1) continue;
      wrong.push_back(absl::StrCat(NameOf(push), " is acknowledged, and ", kept,
                                   " times at server ", server));
    }
  }
  return wrong;
}

bool Ledger::IsOnlySynchronous() const {
  return std::all_of(staleness_.begin(), staleness_.end(),
                     [](int64_t staleness) { return staleness == 0; });
}

// Checks the rows of one policy. Groups the pushes of each synchronous step. In
// a model with both kinds of tables, a push may be late for the synchronous
// table and count for the other table.
void Ledger::CheckRows(const Life& life, size_t policy,
                       const std::map<uint64_t, float>& rows,
                       std::vector<std::string>* wrong) const {
  const bool is_synchronous = staleness_[policy] == 0;
  std::map<Group, int> moved;
  for (const auto& [number, push] : pushes_) {
    for (const Taken& taken : push.taken) {
      const float row = rows.at(push.rows[policy][taken.server]);
      moved[GroupOf(taken)] += row != 0 ? 1 : 0;
    }
  }
  for (const auto& [number, push] : pushes_) {
    for (size_t server = 0; server < push.servers(); ++server) {
      const Taken* in = nullptr;
      Where where = Where::kOut;
      size_t times = 0;
      for (const Taken& taken : push.taken) {
        if (taken.server != server) continue;
        const Where here = WhereIs(life, push, taken);
        if (here == Where::kOut) continue;
        ++times;
        where = here;
        in = &taken;
      }
      const float row = rows.at(push.rows[policy][server]);
      const int share = in == nullptr ? 1 : moved[GroupOf(*in)];
      float expected = times == 0 ? 0 : -kGradient;
      if (is_synchronous && share > 1) {
        expected /= static_cast<float>(share);
      }
      const bool may_be_unapplied =
          times == 1 && ((where == Where::kCurrent && !push.is_settled) ||
                         (is_synchronous && !IsOnlySynchronous()));
      if (times <= 1 && (row == expected || (row == 0 && may_be_unapplied))) {
        continue;
      }
      wrong->push_back(absl::StrCat(
          NameOf(push), " at server ", server, ", table ", policy,
          in == nullptr ? "" : absl::StrCat(", clock ", in->clock), " counted ",
          times, " times, and its row is ", row, ", expected ", expected));
    }
  }
}

void Ledger::CheckDense(const Life& life, size_t policy, const Values& values,
                        std::vector<std::string>* wrong) const {
  const bool is_synchronous = staleness_[policy] == 0;
  std::map<Group, bool> steps;  // true: certainly applied
  size_t pushes = 0;
  size_t applied = 0;
  for (const auto& [number, push] : pushes_) {
    for (const Taken& taken : push.taken) {
      const Life* const then = FindLife(taken.run);
      if (then == nullptr || taken.server != then->owners[policy]) continue;
      const Where where = WhereIs(life, push, taken);
      if (where == Where::kOut) continue;
      const float row = values.rows[policy].at(push.rows[policy][taken.server]);
      if (is_synchronous && row == 0) continue;  // late, or unapplied
      const bool is_certain = where == Where::kPast || push.is_settled;
      ++pushes;
      applied += is_certain ? 1 : 0;
      steps[GroupOf(taken)] |= is_certain;
    }
  }
  if (is_synchronous) {
    pushes = steps.size();
    applied = static_cast<size_t>(
        std::count_if(steps.begin(), steps.end(),
                      [](const auto& step) { return step.second; }));
  }
  for (const float element : values.dense[policy]) {
    if (-element >= static_cast<float>(applied) &&
        -element <= static_cast<float>(pushes)) {
      continue;
    }
    wrong->push_back(absl::StrCat("dense table ", policy, " has ", -element,
                                  " steps, expected ", applied, " to ",
                                  pushes));
    return;
  }
}

std::vector<std::string> Ledger::CheckValues(uint64_t run,
                                             const Values& values) const {
  const Life* const life = FindLife(run);
  std::vector<std::string> wrong;
  for (size_t policy = 0; policy < staleness_.size(); ++policy) {
    CheckRows(*life, policy, values.rows[policy], &wrong);
    CheckDense(*life, policy, values, &wrong);
  }
  return wrong;
}

}  // namespace penstock::ps
