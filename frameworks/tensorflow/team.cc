#include "frameworks/tensorflow/team.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace tensorflow {
namespace {

// A key as rank 0 broadcasts it, padded with zeros.
using Line = std::array<char, Team::kMaxKeyBytes + 1>;

absl::Status Cancelled() {
  return absl::CancelledError("the step was cancelled");
}

}  // namespace

absl::StatusOr<std::shared_ptr<Team>> Team::Start(Form form) {
  auto team = std::make_shared<Team>();
  try {
    std::thread([team, form = std::move(form)] { team->Run(form); }).detach();
  } catch (const std::system_error& error) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no thread for collectives: ", error.what()));
  }
  return team;
}

void Team::Add(Reduction reduction) {
  absl::Status error;
  {
    base::MutexLock lock(&mu_);
    if (reduction.key.empty() || reduction.key.size() > kMaxKeyBytes) {
      error = absl::InvalidArgumentError(
          absl::StrCat("a reduction's key has ", reduction.key.size(),
                       " bytes, expected 1 to ", kMaxKeyBytes));
    } else if (state_ == State::kEnded) {
      error = why_;
    } else if (reduction.cancelled != nullptr && *reduction.cancelled) {
      error = Cancelled();
    } else if (state_ != State::kRefused) {
      waiting_.push_back(std::move(reduction));
      changed_.notify_one();
      return;
    }
  }
  if (error.ok()) return reduction.otherwise();
  reduction.done(error);
}

void Team::Cancel(const std::string& key) {
  const absl::Status why = Cancelled();
  absl::optional<Reduction> found;
  {
    base::MutexLock lock(&mu_);
    found = Find(key);
    if (!found.has_value() && running_ != key) return;
  }
  if (!found.has_value()) return Abort(why);
  found->done(why);
}

void Team::Abort(const absl::Status& why) {
  std::shared_ptr<collectives::Group> group;
  std::list<Reduction> waiting;
  {
    base::MutexLock lock(&mu_);
    if (!aborted_.ok()) return;
    aborted_ = why;
    if (state_ == State::kForming) {
      state_ = State::kEnded;
      why_ = why;
    }
    waiting.swap(waiting_);
    group = group_;
    changed_.notify_one();
  }
  if (group != nullptr) group->Abort();
  for (const Reduction& reduction : waiting) reduction.done(why);
}

Team::Description Team::Describe() const {
  static constexpr const char* kStates[] = {"forming", "reducing", "refused",
                                            "ended"};
  base::MutexLock lock(&mu_);
  return {kStates[static_cast<size_t>(state_)], std::string(why_.message()),
          reductions_};
}

void Team::Run(const Form& form) {
  absl::StatusOr<std::unique_ptr<collectives::Group>> formed = form();
  if (!formed.ok()) return Refuse(formed.status());
  const std::shared_ptr<collectives::Group> group = *std::move(formed);
  {
    base::MutexLock lock(&mu_);
    if (state_ == State::kEnded) return;  // leaves the group
    state_ = State::kReducing;
    group_ = group;
  }
  Reduce(group);
}

void Team::Refuse(const absl::Status& why) {
  std::list<Reduction> waiting;
  {
    base::MutexLock lock(&mu_);
    if (state_ == State::kEnded) return;
    state_ = State::kRefused;
    why_ = why;
    waiting.swap(waiting_);
  }
  for (const Reduction& reduction : waiting) reduction.otherwise();
}

void Team::Reduce(const std::shared_ptr<collectives::Group>& group) {
  absl::Status status;
  while (status.ok()) status = ReduceNext(group.get());
  End(status);
}

absl::Status Team::ReduceNext(collectives::Group* group) {
  Line line = {};
  absl::StatusOr<Reduction> next = absl::UnknownError("not chosen yet");
  if (group->rank() == 0) {
    next = Await("");
    if (!next.ok()) return next.status();
    std::copy(next->key.begin(), next->key.end(), line.begin());
  }
  absl::Status status = group->Broadcast(tensor::DType::kUint8, line.data(),
                                         static_cast<int64_t>(line.size()), 0);
  if (group->rank() != 0) {
    if (!status.ok()) return status;
    next = Await(line.data());
    if (!next.ok()) return next.status();
  }
  if (status.ok()) {
    status = group->AllReduce(next->op, next->dtype, next->in, next->out,
                              next->count);
  }
  {
    base::MutexLock lock(&mu_);
    running_.clear();
    if (status.ok()) ++reductions_;
    if (!status.ok() && !aborted_.ok()) status = aborted_;
  }
  next->done(status);
  return status;
}

absl::StatusOr<Reduction> Team::Await(const std::string& key) {
  base::MutexLock lock(&mu_);
  for (;;) {
    if (!aborted_.ok()) return aborted_;
    absl::optional<Reduction> found = Find(key);
    if (found.has_value()) {
      running_ = found->key;
      return *std::move(found);
    }
    changed_.wait(mu_);
  }
}

absl::optional<Reduction> Team::Find(const std::string& key) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [&key](const Reduction& reduction) {
                                    return key.empty() || reduction.key == key;
                                  });
  if (found == waiting_.end()) return absl::nullopt;
  Reduction reduction = std::move(*found);
  waiting_.erase(found);
  return reduction;
}

void Team::End(const absl::Status& why) {
  std::list<Reduction> waiting;
  absl::Status error;
  std::shared_ptr<collectives::Group> group;  // destroyed outside the lock
  {
    base::MutexLock lock(&mu_);
    error = aborted_.ok() ? why : aborted_;
    state_ = State::kEnded;
    why_ = error;
    waiting.swap(waiting_);
    group = std::move(group_);
  }
  for (const Reduction& reduction : waiting) reduction.done(error);
}

}  // namespace tensorflow
}  // namespace penstock
