#include "tests/ps/chaos/check.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::ps {
namespace {

enum class State { kNone, kPart, kAll };

std::string NameOf(const RecordedPush& push) {
  return absl::StrCat("push ", push.number, " of worker ", push.rank, ", run ",
                      absl::Hex(push.run));
}

class Check {
 public:
  Check(const std::vector<Staleness>& policies, uint32_t workers,
        const ClusterValues& values)
      : policies_(policies),
        workers_(workers),
        values_(values),
        has_mixed_tables_(std::any_of(policies.begin(), policies.end(),
                                      [](const Staleness& each) {
                                        return each.steps == 0;
                                      }) &&
                          std::any_of(policies.begin(), policies.end(),
                                      [](const Staleness& each) {
                                        return each.steps != 0;
                                      })) {}

  // Returns the change of the row's value by the push.
  float MoveOf(size_t policy, uint64_t id) const {
    return -values_.rows[policy].at(id);
  }

  // Returns true if one push can move a row by `move`. The mean of a
  // synchronous step has at most one push of each worker.
  bool IsOfOnePush(size_t policy, float move) const {
    const uint32_t most = policies_[policy].steps == 0 ? workers_ : 1;
    if (move == 0) return true;
    for (uint32_t pushes = 1; pushes <= most; ++pushes) {
      if (move * static_cast<float>(pushes) == kGradient) return true;
    }
    return false;
  }

  State StateOf(const RecordedPush& push) const {
    size_t applied = 0;
    size_t all = 0;
    for (size_t policy = 0; policy < policies_.size(); ++policy) {
      if (has_mixed_tables_ && policies_[policy].steps == 0) continue;
      for (const uint64_t id : push.ids[policy]) {
        ++all;
        applied += MoveOf(policy, id) != 0 ? 1 : 0;
      }
    }
    if (applied == 0) return State::kNone;
    return applied == all ? State::kAll : State::kPart;
  }

  std::string RowsOf(const RecordedPush& push) const {
    std::string text;
    for (size_t policy = 0; policy < policies_.size(); ++policy) {
      absl::StrAppend(&text, " table ", policy, ":");
      for (const uint64_t id : push.ids[policy]) {
        absl::StrAppend(&text, " ", values_.rows[policy].at(id));
      }
    }
    return text;
  }

 private:
  const std::vector<Staleness>& policies_;
  const uint32_t workers_;
  const ClusterValues& values_;
  const bool has_mixed_tables_;
};

}  // namespace

std::vector<std::string> CheckValues(const std::vector<Staleness>& policies,
                                     uint32_t workers,
                                     std::vector<RecordedPush> pushes,
                                     const std::set<uint64_t>& required,
                                     uint64_t run,
                                     const ClusterValues& values) {
  std::sort(pushes.begin(), pushes.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  const Check check(policies, workers, values);
  std::vector<std::string> wrong;
  // The first acknowledged push that is not in the values, for each rank and
  // run.
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> lost;
  std::vector<float> moves(policies.size());  // moves of dense tables
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> by_step;  // and by rank
  for (const RecordedPush& push : pushes) {
    const auto blame = [&](const std::string& what) {
      wrong.push_back(
          absl::StrCat(NameOf(push), what, "; rows:", check.RowsOf(push)));
    };
    for (size_t policy = 0; policy < policies.size(); ++policy) {
      const auto& ids = push.ids[policy];
      moves[policy] += check.MoveOf(policy, ids[push.owners[policy]]);
      for (const uint64_t id : ids) {
        if (!check.IsOfOnePush(policy, check.MoveOf(policy, id))) {
          blame(" is not applied once");
        }
      }
    }
    if (!push.is_acknowledged) continue;
    const State state = check.StateOf(push);
    const std::pair<uint32_t, uint64_t> line(push.rank, push.run);
    if (state == State::kPart) blame(" is applied at some servers only");
    if (state == State::kNone && push.run == run) blame(" is lost");
    if (state == State::kNone && required.count(push.number) > 0) {
      blame(" is lost, and an acknowledged checkpoint has it");
    }
    if (state == State::kNone) lost.insert({line, push.number});
    if (state != State::kAll) continue;
    if (lost.count(line) > 0) {
      blame(absl::StrCat(" is applied, and the earlier push ", lost[line],
                         " is lost"));
    }
    const auto first = by_step.insert({{push.rank, push.step}, push.number});
    if (!first.second) {
      blame(absl::StrCat(" is applied, and so is push ", first.first->second,
                         " of the same step ", push.step));
    }
  }
  for (size_t policy = 0; policy < policies.size(); ++policy) {
    for (const float element : values.dense[policy]) {
      if (-element * kGradient == moves[policy]) continue;
      wrong.push_back(absl::StrCat("dense table ", policy, " has ", -element,
                                   " steps, and its rows have ",
                                   moves[policy] / kGradient));
      break;
    }
  }
  return wrong;
}

}  // namespace penstock::ps
