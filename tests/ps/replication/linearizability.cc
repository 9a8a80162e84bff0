#include "tests/ps/replication/linearizability.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace penstock::ps::replication {
namespace {

class Search {
 public:
  Search(std::vector<Operation> calls, size_t max_states)
      : calls_(std::move(calls)), max_states_(max_states) {
    std::sort(calls_.begin(), calls_.end(),
              [](const auto& a, const auto& b) { return a.called < b.called; });
    done_.resize(calls_.size());
  }

  Judgement Run() {
    if (Explain()) return Judgement::kLinearizable;
    return seen_.size() > max_states_ ? Judgement::kTooLarge : Judgement::kNot;
  }

 private:
  // Returns the time before which one of the remaining calls must have taken
  // effect.
  absl::Time Deadline() const {
    absl::Time deadline = absl::InfiniteFuture();
    for (size_t at = first_; at < calls_.size(); ++at) {
      if (calls_[at].called > deadline) break;
      if (!done_[at]) deadline = std::min(deadline, calls_[at].answered);
    }
    return deadline;
  }

  // Applies a pull that returns the current sum. This excludes no order of the
  // other calls, because a pull changes nothing.
  bool TakeOnePull(std::vector<size_t>* taken) {
    const absl::Time deadline = Deadline();
    for (size_t at = first_; at < calls_.size(); ++at) {
      if (calls_[at].called > deadline) break;
      const bool fits = !done_[at] && calls_[at].kind == Operation::kPull &&
                        calls_[at].value == sum_;
      if (!fits) continue;
      Mark(at, true);
      taken->push_back(at);
      return true;
    }
    return false;
  }

  // Returns true if an order of the remaining calls explains all answers.
  bool Explain() {
    std::vector<size_t> pulls;
    while (TakeOnePull(&pulls)) continue;
    if (ExplainPushes()) return true;
    for (size_t at : pulls) Mark(at, false);
    return false;
  }

  bool ExplainPushes() {
    const absl::Time deadline = Deadline();
    if (deadline == absl::InfiniteFuture()) return true;
    if (seen_.size() > max_states_ || !seen_.insert(done_).second) {
      return false;
    }
    for (size_t at : PushesUntil(deadline)) {
      const size_t first = first_;
      Mark(at, true);
      sum_ += calls_[at].value;
      if (Explain()) return true;
      sum_ -= calls_[at].value;
      Mark(at, false);
      first_ = first;
    }
    return false;
  }

  // Returns the pushes that may take effect next.
  std::vector<size_t> PushesUntil(absl::Time deadline) const {
    std::vector<size_t> pushes;
    for (size_t at = first_; at < calls_.size(); ++at) {
      if (calls_[at].called > deadline) break;
      const bool is_push = calls_[at].kind == Operation::kPush;
      if (!done_[at] && is_push) pushes.push_back(at);
    }
    std::stable_sort(pushes.begin(), pushes.end(), [this](size_t a, size_t b) {
      return calls_[a].guess < calls_[b].guess;
    });
    return pushes;
  }

  void Mark(size_t at, bool is_done) {
    done_[at] = is_done;
    if (!is_done) first_ = std::min(first_, at);
    while (first_ < calls_.size() && done_[first_]) ++first_;
  }

  std::vector<Operation> calls_;  // ordered by the time of the call
  const size_t max_states_;
  std::vector<bool> done_;
  size_t first_ = 0;  // first call that is not done
  uint64_t sum_ = 0;
  absl::flat_hash_set<std::vector<bool>> seen_;
};

}  // namespace

Judgement JudgeHistory(const std::vector<Operation>& history,
                       size_t max_states) {
  std::vector<Operation> calls;
  for (const Operation& call : history) {
    // Leaves out a pull without an answer, because it proves nothing.
    const bool counts = call.kind == Operation::kPush ||
                        call.answered != absl::InfiniteFuture();
    if (counts) calls.push_back(call);
  }
  return Search(std::move(calls), max_states).Run();
}

}  // namespace penstock::ps::replication
