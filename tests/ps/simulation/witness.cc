#include "tests/ps/simulation/witness.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ps/wire/ps.pb.h"
#include "tensor_service/calls.h"
#include "tensor_service/message.h"

namespace penstock::ps {
namespace {

CutId CutOf(const v1::CheckpointAttempt& attempt) {
  return {attempt.step(), attempt.id()};
}

}  // namespace

void Witness::NotePush(const Letter& letter) {
  tensor::Message<v1::PushHeader> push;
  if (!tensor::Decode(letter.request, &push).ok()) return;
  if (push.bundle.tensors.empty()) return;  // the worker skips this step
  // Reads the number of the push from the ids of its rows, which are in the
  // first tensor.
  const auto ids = push.bundle.tensors.front().tensor.flat<int64_t>();
  const auto number = static_cast<uint64_t>(ids->front()) / kIdsPerPush;
  const Taken taken = {push.header.view().run(), letter.server, letter.node,
                       push.header.clock()};
  // A push may count while its call is being cancelled. The call is then
  // answered CANCELLED. Only the push's rows, or the verdict on its repetition,
  // show that it has counted.
  if (letter.status.error_code() == grpc::StatusCode::CANCELLED) {
    return cancelled_.push_back({number, taken});
  }
  v1::PushReply reply;
  if (!letter.status.ok() || !tensor::ToProto(letter.reply, &reply).ok() ||
      reply.verdict() == v1::PushReply::LATE) {
    return;
  }
  const bool counted_before = reply.verdict() == v1::PushReply::DUPLICATE;
  if (counted_before && ledger_->HasCounted(number, letter.server)) return;
  if (!counted_before && ledger_->ConfirmCounted(number, taken)) return;
  ledger_->OnCounted(number, taken, /*is_inferred=*/counted_before);
  say_(absl::StrCat("push ", number, " counts at server ", letter.server,
                    ", clock ", taken.clock));
}

void Witness::InferCounted(const Values& values) {
  for (const auto& [number, taken] : cancelled_) {
    if (ledger_->HasCounted(number, taken.server)) continue;
    const PushIds& ids = ledger_->push(number).rows;
    bool has_moved = false;
    for (size_t policy = 0; policy < ids.size(); ++policy) {
      has_moved |= values.rows[policy].at(ids[policy][taken.server]) != 0;
    }
    if (!has_moved) continue;
    ledger_->OnCounted(number, taken, /*is_inferred=*/true);
    say_(absl::StrCat("push ", number, " has counted at server ", taken.server,
                      ", although its call was cancelled"));
  }
}

void Witness::NoteBegun(const Letter& letter,
                        const std::set<uint64_t>* settled) {
  v1::BeginCheckpointRequest begin;
  v1::CheckpointAttempt attempt;
  if (!tensor::ToProto(letter.request, &begin).ok()) return;
  const uint64_t run = begin.view().run();
  const bool has_all =
      letter.status.error_code() == grpc::StatusCode::ALREADY_EXISTS;
  if (has_all &&
      absl::StrContains(letter.status.error_message(), "everything")) {
    absl::optional<CutId> newest;
    const Life* const life = ledger_->FindLife(run);
    if (life != nullptr) newest = life->cut;
    if (committed_.count(run) > 0) newest = committed_[run];
    if (settled != nullptr && newest.has_value()) {
      blame_(ledger_->CheckHas(*newest, *settled));
    }
  }
  if (!letter.status.ok() || !tensor::ToProto(letter.reply, &attempt).ok()) {
    return;
  }
  if (attempt.running()) return;  // the caller waits for another attempt
  Observe();  // a worker that attaches again may have defined the training
  if (!attempt.committed()) return ledger_->OnBegun(CutOf(attempt), run);
  if (settled != nullptr) {
    blame_(ledger_->CheckHas(CutOf(attempt), *settled));
  }
}

void Witness::NoteCommit(const Letter& letter) {
  v1::CommitCheckpointRequest commit;
  if (!letter.status.ok() || !tensor::ToProto(letter.request, &commit).ok()) {
    return;
  }
  const CutId cut = CutOf(commit.attempt());
  CutRecord* const record = ledger_->FindCut(cut);
  if (record == nullptr) return;
  const bool is_in_main = servers_->IsInMainFolder(letter.server);
  const auto manifest = servers_->ManifestOf(cut);
  if (!manifest.ok()) {
    if (!is_in_main) return;  // the folder may be lost
    return blame_(
        {absl::StrCat("the committed cut of step ", cut.step,
                      " has no manifest: ", manifest.status().message())});
  }
  ++checkpoints_;
  say_(absl::StrCat("cut of step ", cut.step, " is committed"));
  record->clocks = manifest->cut;
  if (is_in_main) newest_ = cut;
  committed_[commit.view().run()] = cut;
  blame_(ledger_->CheckCut(cut));
}

void Witness::Observe() {
  const absl::optional<Life> life = servers_->CommonLife();
  if (!life.has_value()) return;
  const Life* const known = ledger_->FindLife(life->run);
  const bool is_new = known == nullptr || known->cut != life->cut;
  if (!is_new && known->nodes == life->nodes) return;
  say_(absl::StrCat("training", servers_->Describe()));
  if (is_new) CheckNewest(*life);
  ledger_->OnLife(*life);
  if (is_new && life->cut.has_value()) {
    ++restores_;
    const auto manifest = servers_->ManifestOf(*life->cut);
    CutRecord* const record = ledger_->FindCut(*life->cut);
    // Record the clocks again: the answer to the commit may have been lost.
    if (record != nullptr && manifest.ok()) record->clocks = manifest->cut;
    blame_(ledger_->CheckCut(*life->cut));
  }
  CheckAll();
}

void Witness::CheckNewest(const Life& life) {
  if (!servers_->all_proper() || !newest_.has_value()) return;
  if (!life.cut.has_value()) {
    return blame_(
        {absl::StrCat("the training starts over, and the cut of step ",
                      newest_->step, " is acknowledged")});
  }
  const CutRecord* const cut = ledger_->FindCut(*life.cut);
  if (cut != nullptr && cut->order >= ledger_->FindCut(*newest_)->order) return;
  blame_({absl::StrCat("the training goes on from step ", life.cut->step,
                       ", and the cut of step ", newest_->step,
                       " is acknowledged")});
}

void Witness::CheckFirstStep(const Trainer& trainer) {
  const Life* const life = ledger_->FindLife(trainer.connection().run());
  if (life == nullptr || !life->cut.has_value()) return;
  const uint64_t first = ledger_->ClockIn(*life->cut, trainer.rank());
  if (trainer.step() >= first) return;
  blame_({absl::StrCat("worker ", trainer.rank(), " begins at step ",
                       trainer.step(), ", and the cut of step ",
                       life->cut->step, " has its steps below ", first)});
}

void Witness::CheckAll() {
  blame_(servers_->CheckMemory());
  const absl::optional<Life> life = servers_->CommonLife();
  if (!life.has_value()) return;
  const Life* const known = ledger_->FindLife(life->run);
  if (known == nullptr || known->nodes != life->nodes) return;
  blame_(ledger_->CheckKept(life->run));
  const absl::optional<Values> values = servers_->Read(ledger_->pushes());
  if (!values.has_value()) return;
  InferCounted(*values);
  blame_(ledger_->CheckValues(life->run, *values));
}

}  // namespace penstock::ps
