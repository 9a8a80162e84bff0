#include "frameworks/tensorflow/team.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace tensorflow {
namespace {

using collectives::Group;

constexpr tensor::DType kBytes = tensor::DType::kUint8;
constexpr auto kLineBytes = static_cast<int64_t>(sizeof(TeamLineBytes));
// The tag of messages to rank 0.
constexpr uint32_t kTag = 1;

absl::Status Cancelled() {
  return absl::CancelledError("the step was cancelled");
}

absl::Status NoThread(const std::system_error& error) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no thread for collectives: ", error.what()));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Team>> Team::Start(Form form) {
  auto team = std::make_shared<Team>();
  try {
    std::thread([team, form = std::move(form)] { team->Run(form); }).detach();
  } catch (const std::system_error& error) {
    return NoThread(error);
  }
  return team;
}

void Team::Add(Reduction reduction) {
  const auto call = std::make_shared<Call>(Call{std::move(reduction)});
  const std::string& key = call->reduction.key;
  const auto& cancelled = call->reduction.cancelled;
  absl::Status error;
  bool is_added = false;
  {
    base::MutexLock lock(&mu_);
    if (key.empty() || key.size() > TeamLine::kMaxKeyBytes) {
      error = absl::InvalidArgumentError(
          absl::StrCat("a reduction's key has ", key.size(),
                       " bytes, expected 1 to ", TeamLine::kMaxKeyBytes));
    } else if (state_ == State::kEnded) {
      error = why_;
    } else if (cancelled != nullptr && *cancelled) {
      error = Cancelled();
    } else if (state_ == State::kReducing && !aborted_.ok()) {
      error = aborted_;
    } else if (state_ != State::kRefused) {
      Tell(TeamLine::Kind::kCalled, key);
      waiting_.push_back(call);
      is_added = true;
    }
  }
  if (is_added) return Send();
  call->reduction.memory.reset();
  if (error.ok()) return call->reduction.otherwise();
  call->reduction.done(error);
}

void Team::Cancel(const std::string& key) {
  CallPtr call;
  {
    base::MutexLock lock(&mu_);
    call = TakeWaiting(key);
    if (call != nullptr) {
      Tell(TeamLine::Kind::kGaveUp, key);
      call->reduction.memory.reset();
    } else if (running_ != nullptr && running_->reduction.key == key) {
      call = running_;
    }
  }
  if (call == nullptr) return;
  Finish(call, Cancelled());
  Send();
}

void Team::Abort(const absl::Status& why) {
  std::shared_ptr<Group> group;
  std::list<CallPtr> waiting;
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
  Finish(waiting, why);
}

Team::Description Team::Describe() const {
  static constexpr const char* kStates[] = {"forming", "reducing", "refused",
                                            "ended"};
  base::MutexLock lock(&mu_);
  return {kStates[static_cast<size_t>(state_)], std::string(why_.message()),
          reductions_, waiting_.size()};
}

void Team::Run(const Form& form) {
  absl::StatusOr<std::unique_ptr<Group>> formed = form();
  if (!formed.ok()) return Refuse(formed.status());
  const std::shared_ptr<Group> group = *std::move(formed);
  {
    base::MutexLock lock(&mu_);
    if (state_ == State::kEnded) return;  // leaves the group
    state_ = State::kReducing;
    group_ = group;
    if (group->rank() == 0) {
      called_ = std::make_unique<CalledReductions>(group->ranks());
    }
    for (const CallPtr& call : waiting_) {
      Tell(TeamLine::Kind::kCalled, call->reduction.key);
    }
  }
  Send();
  std::vector<std::thread> listeners;
  absl::Status status;
  try {
    for (int rank = 1; group->rank() == 0 && rank < group->ranks(); ++rank) {
      listeners.emplace_back(
          [this, &group, rank] { Listen(group.get(), rank); });
    }
    status = Reduce(group.get());
  } catch (const std::system_error& error) {
    status = NoThread(error);
  }
  End(status);
  for (std::thread& listener : listeners) listener.join();
}

void Team::Refuse(const absl::Status& why) {
  std::list<CallPtr> waiting;
  {
    base::MutexLock lock(&mu_);
    if (state_ == State::kEnded) return;
    state_ = State::kRefused;
    why_ = why;
    waiting.swap(waiting_);
  }
  for (const CallPtr& call : waiting) {
    call->reduction.memory.reset();
    call->reduction.otherwise();
  }
}

absl::Status Team::Reduce(Group* group) {
  absl::Status status;
  while (status.ok()) status = ReduceNext(group);
  return status;
}

absl::Status Team::ReduceNext(Group* group) {
  const absl::StatusOr<std::string> key = NextKey(group);
  const absl::StatusOr<bool> agreed =
      key.ok() ? Agree(group, *key) : absl::StatusOr<bool>(key.status());
  if (agreed.ok() && !*agreed) return absl::OkStatus();
  absl::Status status = agreed.ok() ? RunCall(group) : agreed.status();
  CallPtr call;
  {
    base::MutexLock lock(&mu_);
    call.swap(running_);
    if (status.ok()) ++reductions_;
    if (!status.ok() && !aborted_.ok()) status = aborted_;
  }
  if (call == nullptr) return status;
  call->reduction.memory.reset();
  Finish(call, status);
  return status;
}

absl::StatusOr<std::string> Team::NextKey(Group* group) {
  TeamLine line;
  line.kind = TeamLine::Kind::kReduce;
  if (group->rank() == 0) {
    absl::StatusOr<std::string> key = Choose();
    if (!key.ok()) return key.status();
    line.key = *std::move(key);
  }
  TeamLineBytes bytes = Encode(line);
  absl::Status status = group->Broadcast(kBytes, bytes.data(), kLineBytes, 0);
  if (!status.ok()) return status;
  const absl::StatusOr<TeamLine> received = DecodeTeamLine(bytes);
  if (!received.ok()) return received.status();
  base::MutexLock lock(&mu_);
  running_ = TakeWaiting(received->key);
  return received->key;
}

absl::StatusOr<std::string> Team::Choose() {
  base::MutexLock lock(&mu_);
  for (;;) {
    if (!aborted_.ok()) return aborted_;
    if (!deaf_.ok()) return deaf_;
    for (const CallPtr& call : waiting_) {
      if (called_->Take(call->reduction.key)) return call->reduction.key;
    }
    changed_.wait(mu_);
  }
}

absl::StatusOr<bool> Team::Agree(Group* group, const std::string& key) {
  uint8_t vote;
  {
    base::MutexLock lock(&mu_);
    vote = running_ != nullptr && !running_->is_over ? 1 : 0;
  }
  std::vector<uint8_t> votes(group->ranks());
  absl::Status status = group->AllGather(kBytes, &vote, votes.data(), 1);
  if (!status.ok()) return status;
  if (std::count(votes.begin(), votes.end(), 0) == 0) return true;
  PutBack(key);
  return false;
}

void Team::PutBack(const std::string& key) {
  {
    base::MutexLock lock(&mu_);
    const CallPtr call = std::move(running_);
    running_ = nullptr;
    if (called_ != nullptr) called_->PutBack(key);
    if (call == nullptr) return;
    if (!call->is_over) {
      waiting_.push_front(call);
      return;
    }
    // Cancel() did not tell rank 0, because the call was running at that time.
    Tell(TeamLine::Kind::kGaveUp, key);
  }
  Send();
}

absl::Status Team::RunCall(Group* group) {
  CallPtr call;
  {
    base::MutexLock lock(&mu_);
    call = running_;
  }
  const Reduction& reduction = call->reduction;
  return group->AllReduce(reduction.op, reduction.dtype, reduction.in,
                          reduction.out, reduction.count);
}

void Team::Listen(Group* group, int rank) {
  absl::Status status;
  while (status.ok()) {
    TeamLineBytes bytes = {};
    status = group->Receive(kBytes, bytes.data(), kLineBytes, rank, kTag);
    base::MutexLock lock(&mu_);
    if (status.ok()) status = Hear(bytes, rank);
    if (!status.ok() && deaf_.ok()) deaf_ = status;
    changed_.notify_one();
  }
}

absl::Status Team::Hear(const TeamLineBytes& bytes, int rank) {
  const absl::StatusOr<TeamLine> line = DecodeTeamLine(bytes);
  if (!line.ok()) return line.status();
  if (line->kind == TeamLine::Kind::kCalled) {
    called_->Add(rank, line->key);
  } else {
    called_->Remove(rank, line->key);
  }
  return absl::OkStatus();
}

void Team::Tell(TeamLine::Kind kind, const std::string& key) {
  if (state_ != State::kReducing) return;
  if (called_ == nullptr) {
    unsent_.push_back({kind, key});
    return;
  }
  if (kind == TeamLine::Kind::kCalled) {
    called_->Add(0, key);
    changed_.notify_one();
  } else {
    called_->Remove(0, key);
  }
}

void Team::Send() {
  base::MutexLock sending(&send_mu_);
  for (;;) {
    std::shared_ptr<Group> group;
    TeamLine line;
    {
      base::MutexLock lock(&mu_);
      if (group_ == nullptr || unsent_.empty()) return;
      group = group_;
      line = std::move(unsent_.front());
      unsent_.pop_front();
    }
    const TeamLineBytes bytes = Encode(line);
    // The team's thread gets the same error.
    if (!group->Send(kBytes, bytes.data(), kLineBytes, 0, kTag).ok()) return;
  }
}

void Team::Finish(const CallPtr& call, const absl::Status& status) {
  {
    base::MutexLock lock(&mu_);
    if (call->is_over) return;
    call->is_over = true;
  }
  call->reduction.done(status);
}

void Team::Finish(const std::list<CallPtr>& calls, const absl::Status& status) {
  for (const CallPtr& call : calls) {
    call->reduction.memory.reset();
    Finish(call, status);
  }
}

Team::CallPtr Team::TakeWaiting(const std::string& key) {
  const auto found = std::find_if(
      waiting_.begin(), waiting_.end(),
      [&key](const CallPtr& call) { return call->reduction.key == key; });
  if (found == waiting_.end()) return nullptr;
  CallPtr call = *found;
  waiting_.erase(found);
  return call;
}

void Team::End(const absl::Status& why) {
  std::list<CallPtr> waiting;
  absl::Status error;
  std::shared_ptr<Group> group;
  {
    base::MutexLock lock(&mu_);
    error = aborted_.ok() ? why : aborted_;
    state_ = State::kEnded;
    why_ = error;
    waiting.swap(waiting_);
    group = std::move(group_);
  }
  // Ends the waits of Listen() and Send().
  group->Abort();
  Finish(waiting, error);
}

}  // namespace tensorflow
}  // namespace penstock
