#include "tests/ps/replication/worker.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::ps::replication {

Worker::Worker(World* world, Ledger* ledger, Hooks hooks, uint32_t rank,
               uint64_t incarnation, size_t max_bytes)
    : world_(world),
      ledger_(ledger),
      hooks_(std::move(hooks)),
      id_{rank, incarnation},
      name_(absl::StrCat("worker ", rank, ".", incarnation)),
      max_bytes_(max_bytes) {}

void Worker::Act() {
  if (is_over_) return;
  if (!is_calling_) Begin();
  if (is_calling_) hooks_.send(call_);
}

void Worker::Begin() {
  Call call;
  call.number = next_number_++;
  call.from = name_;
  call.push = {id_, clock_};
  if (!is_member_) {
    call.kind = Call::kJoin;
  } else if (pulls_) {
    call.kind = Call::kPull;
    call.floor = ledger_->Floor();
    recorded_ = ledger_->BeginPull();
  } else {
    if (!hooks_.may_push(clock_)) return;
    call.kind = Call::kPush;
    call.amount = world_->dice().Bits();
    call.bytes = world_->dice().Below(max_bytes_);
    recorded_ = ledger_->BeginPush(call.push, call.amount);
  }
  call_ = call;
  is_calling_ = true;
}

void Worker::OnReply(const Reply& reply) {
  if (is_over_ || !is_calling_ || reply.number != call_.number) return;
  switch (reply.result) {
    case Reply::kAgain:
      return;
    case Reply::kSuperseded:
      world_->Count("worker superseded");
      is_over_ = true;
      return;
    case Reply::kNotJoined:
      if (!hooks_.has_two_rivals()) {
        world_->Fail("an acknowledged join is forgotten");
      }
      is_over_ = true;
      return;
    case Reply::kPassed:
      if (!hooks_.has_two_rivals()) {
        world_->Fail("a push is taken for another worker's");
      }
      is_over_ = true;
      return;
    case Reply::kDone:
      break;
  }
  is_calling_ = false;
  switch (call_.kind) {
    case Call::kJoin:
      is_member_ = true;
      clock_ = reply.clock;
      return;
    case Call::kPull:
      ledger_->EndCall(recorded_, reply.value);
      pulls_ = false;
      return;
    case Call::kPush:
      ledger_->EndCall(recorded_, 0);
      pulls_ = true;
      ++clock_;
      ++pushed_;
  }
}

}  // namespace penstock::ps::replication
