#include "tests/ps/replication/node.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::ps::replication {

using Verdict = PushHistory::Verdict;

namespace {

constexpr int kMaxInFlight = 8;  // messages to a replica; servers have one

}  // namespace

Node::Node(World* world, Ledger* ledger, Hooks hooks, const Options& options,
           Step step, Start start)
    : world_(world),
      ledger_(ledger),
      hooks_(std::move(hooks)),
      options_(options),
      step_(step),
      tells_views_(world->dice().Chance(50)),
      is_slow_(world->dice().Chance(20)),
      clock_(world),
      replica_(start == Start::kEmpty
                   ? Replica(options)
                   : Replica(options, PushHistory(), start == Start::kLeads)) {}

void Node::OnView(const std::shared_ptr<const View>& view) {
  const bool is_old = view->number <= replica_.view();
  const bool led = replica_.primary() != nullptr;
  const absl::Status status = replica_.OnView(*view, clock_.Now());
  const bool is_expected =
      is_old ? status.ok() || absl::IsFailedPrecondition(status) : status.ok();
  if (!is_expected) world_->Fail(absl::StrCat("view: ", status.message()));
  if (is_old) return;
  view_ = view;
  if (led && replica_.primary() == nullptr) {
    world_->Count("primary deposed");
    DropCalls();
  }
  Pump();
}

void Node::DropCalls() {
  waiting_.clear();
  pulls_.clear();
  gathered_.clear();
  snapshots_.clear();
}

void Node::OnCall(const Call& call) {
  Primary* primary = replica_.primary();
  if (primary == nullptr) {
    return hooks_.reply(call.from, {call.number, Reply::kAgain});
  }
  switch (call.kind) {
    case Call::kJoin:
      TakeJoin(call);
      break;
    case Call::kPush:
      TakePush(call);
      break;
    case Call::kPull:
      pulls_.push_back({call, primary->committed()});
      break;
  }
  Pump();
}

void Node::TakeJoin(const Call& call) {
  Primary* primary = replica_.primary();
  const WorkerId& worker = call.push.worker;
  const PushHistory::Judgement judgement = primary->JudgeJoin(worker);
  const auto known = primary->ClockOf(worker.rank);
  const uint64_t clock = known.has_value() ? known->clock : 0;
  switch (judgement.verdict) {
    case Verdict::kNew:
      return Wait(primary->Join(worker, clock_.Now()), call, clock);
    case Verdict::kRepeated:
      return Wait(judgement.seq, call, clock);
    default:
      return Refuse(call, judgement.verdict);
  }
}

void Node::TakePush(const Call& call) {
  const PushHistory::Judgement judgement = replica_.primary()->Judge(call.push);
  if (judgement.verdict == Verdict::kRepeated) {
    world_->Count("push repeated");
    return Wait(judgement.seq, call, 0);
  }
  if (judgement.verdict != Verdict::kNew) {
    return Refuse(call, judgement.verdict);
  }
  step_.ranks == 0 ? AcceptOne(call) : Gather(call);
}

void Node::AcceptOne(const Call& call) {
  Wait(replica_.primary()->Accept(
           {call.push}, std::make_shared<Amount>(call.amount, call.bytes),
           clock_.Now()),
       call, 0);
}

void Node::Gather(const Call& call) {
  gathered_[call.push.worker.rank] = call;
  // Drops the pushes of workers that were superseded after these pushes had
  // arrived.
  for (auto at = gathered_.begin(); at != gathered_.end();) {
    const auto verdict = replica_.primary()->Judge(at->second.push).verdict;
    at = verdict == Verdict::kNew ? std::next(at) : gathered_.erase(at);
  }
  if (gathered_.size() == step_.ranks) AcceptStep();
}

void Node::AcceptStep() {
  std::vector<WorkerPush> pushes;
  uint64_t sum = 0;
  for (const auto& [rank, call] : gathered_) {
    pushes.push_back(call.push);
    sum += call.amount;
  }
  const auto calls = std::move(gathered_);
  gathered_.clear();
  const absl::StatusOr<uint64_t> seq = replica_.primary()->Accept(
      std::move(pushes),
      std::make_shared<Amount>(sum, calls.begin()->second.bytes), clock_.Now());
  for (const auto& entry : calls) Wait(seq, entry.second, 0);
}

void Node::Wait(absl::StatusOr<uint64_t> seq, const Call& call,
                uint64_t clock) {
  if (seq.ok()) {
    waiting_.insert({*seq, {call, clock}});
    return;
  }
  if (absl::IsResourceExhausted(seq.status())) {
    world_->Count("push refused: the log is full");
    return hooks_.reply(call.from, {call.number, Reply::kAgain});
  }
  world_->Fail(absl::StrCat("a push is refused: ", seq.status().message()));
}

void Node::Refuse(const Call& call, Verdict verdict) {
  if (!replica_.primary()->MayAnswer(clock_.Now())) {
    return hooks_.reply(call.from, {call.number, Reply::kAgain});
  }
  switch (verdict) {
    case Verdict::kSuperseded:
      return hooks_.reply(call.from, {call.number, Reply::kSuperseded});
    case Verdict::kNotJoined:
      return hooks_.reply(call.from, {call.number, Reply::kNotJoined});
    case Verdict::kPassed:
      return hooks_.reply(call.from, {call.number, Reply::kPassed});
    case Verdict::kNew:
    case Verdict::kRepeated:
    case Verdict::kInvalid:
      world_->Fail("a push is invalid");
  }
}

void Node::OnTimer() {
  ++timers_;
  Primary* primary = replica_.primary();
  if (primary == nullptr) return;
  for (const ReplicaId& peer : primary->Peers()) {
    // Treats a silent connection as broken, and sends its messages again.
    if (timers_ % 8 == 0) {
      primary->Resend(peer);
      in_flight_[peer] = 0;
    }
    if (timers_ % 16 == 0) primary->LoseSnapshot(peer);
    Send(peer, *primary->Heartbeat(peer, clock_.Now()));
  }
  if (timers_ % 4 == 0) RenewSnapshots(primary);
  for (const ReplicaId& joiner : primary->Complete()) {
    hooks_.propose(replica_.view(), joiner);
  }
  for (const Primary::Complaint& complaint : primary->Overdue(clock_.Now())) {
    hooks_.complain(replica_.view(), complaint.replica);
  }
  Pump();
}

void Node::Send(const ReplicaId& to, Append message) {
  const auto view = tells_views_ ? view_ : nullptr;
  hooks_.send(to.server, [to, message, view](Node* node) {
    if (node->id() != to) return;
    if (view != nullptr) node->OnView(view);
    node->OnAppend(message);
  });
}

void Node::OnAppend(const Append& message) {
  if (replica_.backup() == nullptr) return;
  Answered(message.envelope.from,
           replica_.backup()->OnAppend(message, clock_.Now()));
}

void Node::OnSnapshot(const Snapshot& message) {
  if (replica_.backup() == nullptr) return;
  bool replaces_values = false;
  Answer answer =
      replica_.backup()->OnSnapshot(message, clock_.Now(), &replaces_values);
  if (replaces_values) {
    world_->Count("snapshot taken");
    values_ = static_cast<const ValuesPayload&>(*message.values).values();
    ledger_->Restored(replica_.holdings().applied, values_.bits);
  }
  Answered(message.envelope.from, std::move(answer));
}

void Node::Answered(const ReplicaId& to, Answer answer) {
  if (!answer.status.ok()) {
    world_->Count(absl::StrCat("message refused: ",
                               absl::StatusCodeToString(answer.status.code())));
  }
  hooks_.send(to.server, [to, answer](Node* node) {
    if (node->id() == to) node->OnAnswer(answer);
  });
  Pump();
}

void Node::OnAnswer(const Answer& answer) {
  if (replica_.primary() == nullptr) return;
  int& in_flight = in_flight_[answer.envelope.from];
  in_flight = std::max(0, in_flight - 1);
  replica_.primary()->OnAnswer(answer, clock_.Now());
  Pump();
}

void Node::Pump() {
  if (!is_slow_ || world_->dice().Chance(20)) OnApply();
  Primary* primary = replica_.primary();
  if (primary == nullptr) return;
  for (const ReplicaId& peer : primary->Peers()) {
    // Limits the messages in flight. Each refusal makes the primary send all
    // later messages again, so without a limit, refusals multiply.
    int& in_flight = in_flight_[peer];
    while (in_flight < kMaxInFlight) {
      const auto message = primary->Next(peer, clock_.Now());
      if (!message.has_value()) break;
      ++in_flight;
      Send(peer, *message);
    }
  }
  for (const ReplicaId& joiner : primary->WantSnapshot()) {
    const auto message = primary->MakeSnapshot(
        joiner, std::make_shared<ValuesPayload>(values_), clock_.Now());
    snapshots_[joiner] = *message;
    SendSnapshot(joiner, *message);
  }
  AnswerCalls();
}

void Node::SendSnapshot(const ReplicaId& to, const Snapshot& message) {
  hooks_.send(to.server, [to, message](Node* node) {
    if (node->id() == to) node->OnSnapshot(message);
  });
}

// Renews snapshots that are older than the current view.
void Node::RenewSnapshots(Primary* primary) {
  for (const auto& [joiner, message] : snapshots_) {
    const auto renewed = primary->RenewSnapshot(joiner, message, clock_.Now());
    if (!renewed.has_value()) continue;
    if (message.envelope.view != renewed->envelope.view) {
      world_->Count("snapshot renewed");
    }
    SendSnapshot(joiner, *renewed);
  }
}

void Node::AnswerCalls() {
  Primary* primary = replica_.primary();
  if (waiting_.empty() && pulls_.empty()) return;
  if (!primary->MayAnswer(clock_.Now())) return;
  while (!waiting_.empty() && waiting_.begin()->first <= primary->committed()) {
    const uint64_t seq = waiting_.begin()->first;
    const Waiting waiting = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    hooks_.check_answer(this, seq);
    const Call& call = waiting.call;
    if (call.kind == Call::kJoin) {
      ledger_->Joined(call.push.worker, seq);
    } else {
      ledger_->Acknowledged(call.push, seq);
    }
    hooks_.reply(call.from, {call.number, Reply::kDone, waiting.clock});
  }
  if (!primary->HasAppliedInherited()) return;
  std::vector<WaitingPull> later;
  for (const WaitingPull& pull : pulls_) {
    if (primary->holdings().applied < pull.target) {
      later.push_back(pull);
      continue;
    }
    world_->Count("pull");
    hooks_.check_answer(this, 0);  // entry 0: none
    ledger_->Pulled(world_->has_wild_clocks() ? 0 : pull.call.floor,
                    primary->holdings().applied, values_.bits);
    hooks_.reply(pull.call.from,
                 {pull.call.number, Reply::kDone, 0, values_.sum});
  }
  pulls_ = std::move(later);
}

void Node::OnApply() {
  while (const EntryPtr entry = replica_.NextToApply()) {
    Apply(*entry, &values_);
    ledger_->Applied(*entry, values_.bits);
    replica_.Applied();
  }
}

bool Node::MayAnswer() {
  if (replica_.primary() == nullptr) return false;
  Primary copy = *replica_.primary();
  return copy.MayAnswer(clock_.Now());
}

bool Node::HoldsEntry(uint64_t seq, uint64_t view) const {
  const Holdings& holdings = replica_.holdings();
  return holdings.has_values &&
         (holdings.applied >= seq || holdings.log.ViewAt(seq) == view);
}

void Node::CheckBounds() {
  if (replica_.holdings().log.bytes() > options_.max_log_bytes) {
    world_->Fail("a log grows above its limit");
  }
}

}  // namespace penstock::ps::replication
