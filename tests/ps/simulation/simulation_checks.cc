// Takes note of what happens in a simulation, and checks it.

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ps/wire/ps.pb.h"
#include "tensor_service/calls.h"
#include "tensor_service/message.h"
#include "tests/ps/simulation/simulation.h"

namespace penstock::ps {
namespace {

CutId CutOf(const v1::CheckpointAttempt& attempt) {
  return {attempt.step(), attempt.id()};
}

}  // namespace

bool Simulation::NoteAnswers() {
  bool has_news = false;
  for (const LetterPtr& letter : mail_.Open()) {
    if (letter->stage != Letter::Stage::kAnswered || letter->is_noted) continue;
    letter->is_noted = true;
    has_news = true;
    if (letter->method == "Push") NotePush(*letter);
    if (letter->method == "BeginCheckpoint") NoteBegun(*letter);
    if (letter->method == "CommitCheckpoint") NoteCommit(*letter);
    if (letter->is_ghost) mail_.Drop(letter);
  }
  return has_news;
}

void Simulation::NotePush(const Letter& letter) {
  tensor::Message<v1::PushHeader> push;
  v1::PushReply reply;
  if (!letter.status.ok() || !tensor::Decode(letter.request, &push).ok() ||
      !tensor::ToProto(letter.reply, &reply).ok() ||
      reply.verdict() != v1::PushReply::COUNTED) {
    return;
  }
  // The first tensor has the ids of rows.
  const auto ids = push.bundle.tensors.front().tensor.flat<int64_t>();
  const auto number = static_cast<uint64_t>(ids->front()) / kIdsPerPush;
  const Taken taken = {push.header.view().run(), letter.server, letter.node,
                       push.header.clock()};
  ledger_.OnCounted(number, taken);
  Say(absl::StrCat("push ", number, " counts at server ", letter.server,
                   ", clock ", taken.clock));
}

void Simulation::NoteBegun(const Letter& letter) {
  v1::BeginCheckpointRequest begin;
  v1::CheckpointAttempt attempt;
  if (!tensor::ToProto(letter.request, &begin).ok()) return;
  const uint64_t run = begin.view().run();
  const bool has_all =
      letter.status.error_code() == grpc::StatusCode::ALREADY_EXISTS;
  if (has_all &&
      absl::StrContains(letter.status.error_message(), "everything")) {
    absl::optional<CutId> newest;
    const Life* const life = ledger_.FindLife(run);
    if (life != nullptr) newest = life->cut;
    if (committed_.count(run) > 0) newest = committed_[run];
    for (const auto& saver : savers_) {
      if (saver == nullptr || saver->id() != letter.client) continue;
      if (newest.has_value())
        Blame(ledger_.CheckHas(*newest, saver->settled()));
    }
  }
  if (!letter.status.ok() || !tensor::ToProto(letter.reply, &attempt).ok()) {
    return;
  }
  if (attempt.running()) return;  // the caller waits for another one
  if (!attempt.committed()) return ledger_.OnBegun(CutOf(attempt), run);
  for (const auto& saver : savers_) {
    if (saver == nullptr || saver->id() != letter.client) continue;
    Blame(ledger_.CheckHas(CutOf(attempt), saver->settled()));
  }
}

void Simulation::NoteCommit(const Letter& letter) {
  v1::CommitCheckpointRequest commit;
  if (!letter.status.ok() || !tensor::ToProto(letter.request, &commit).ok()) {
    return;
  }
  const CutId cut = CutOf(commit.attempt());
  CutRecord* const record = ledger_.FindCut(cut);
  if (record == nullptr || !servers_.IsInMainFolder(letter.server)) return;
  const auto manifest = servers_.ManifestOf(cut);
  if (!manifest.ok()) {
    return Blame(
        {absl::StrCat("the committed cut of step ", cut.step,
                      " has no manifest: ", manifest.status().message())});
  }
  ++tally_.checkpoints;
  Say(absl::StrCat("cut of step ", cut.step, " is committed"));
  record->clocks = manifest->cut;
  newest_ = cut;
  committed_[commit.view().run()] = cut;
  Blame(ledger_.CheckCut(cut));
}

void Simulation::Observe() {
  const absl::optional<Life> life = servers_.CommonLife();
  if (!life.has_value()) return;
  const Life* const known = ledger_.FindLife(life->run);
  const bool is_new = known == nullptr || known->cut != life->cut;
  if (!is_new && known->nodes == life->nodes) return;
  Say(absl::StrCat("training", servers_.Describe()));
  if (is_new) CheckNewest(*life);
  ledger_.OnLife(*life);
  if (is_new && life->cut.has_value()) {
    ++tally_.restores;
    const auto manifest = servers_.ManifestOf(*life->cut);
    CutRecord* const record = ledger_.FindCut(*life->cut);
    // The answer to the commit may have been lost.
    if (record != nullptr && manifest.ok()) record->clocks = manifest->cut;
    Blame(ledger_.CheckCut(*life->cut));
  }
  CheckAll();
}

void Simulation::CheckNewest(const Life& life) {
  if (!servers_.all_proper() || !newest_.has_value()) return;
  if (!life.cut.has_value()) {
    return Blame({absl::StrCat("the training begins anew, and the cut of step ",
                               newest_->step, " is acknowledged")});
  }
  const CutRecord* const cut = ledger_.FindCut(*life.cut);
  if (cut != nullptr && cut->order >= ledger_.FindCut(*newest_)->order) return;
  Blame({absl::StrCat("the training goes on from step ", life.cut->step,
                      ", and the cut of step ", newest_->step,
                      " is acknowledged")});
}

void Simulation::CheckAll() {
  Blame(servers_.CheckMemory());
  const absl::optional<Life> life = servers_.CommonLife();
  if (!life.has_value()) return;
  const Life* const known = ledger_.FindLife(life->run);
  if (known == nullptr || known->nodes != life->nodes) return;
  Blame(ledger_.CheckKept(life->run));
  const absl::optional<Values> values = servers_.Read(ledger_.pushes());
  if (values.has_value()) Blame(ledger_.CheckValues(life->run, *values));
}

}  // namespace penstock::ps
