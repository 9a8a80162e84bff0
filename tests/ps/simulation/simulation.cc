#include "tests/ps/simulation/simulation.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "tests/ps/simulation/virtual_time.h"

namespace penstock::ps {
namespace {

constexpr size_t kHistory = 400;
constexpr uint32_t kMaxWorkers = 3;
constexpr size_t kMuchMemory = 1 << 20;
// An upper bound of the bytes that one push's gradients take at one server.
constexpr size_t kPushBytes = 72 << 10;
// A little more than the longest pause of a client before it repeats a call.
constexpr absl::Duration kLongestPause = absl::Seconds(2);
// The real time after which a simulation counts as stuck. Far longer than any
// event takes.
constexpr absl::Duration kStuck = absl::Seconds(20);
// Limit the events and the restarts of a part without faults. Such a part must
// end.
constexpr int kMaxFairEvents = 5000;
constexpr int kMaxFairRestarts = 4;

constexpr int64_t kAsync = ConsistencyPolicy::kUnlimited;

std::vector<int64_t> StalenessOf(uint64_t choice) {
  const std::vector<std::vector<int64_t>> all = {
      {0}, {kAsync}, {2}, {0, kAsync}, {1, kAsync}, {0, 3}};
  return all[choice % all.size()];
}

// Returns the policies for these staleness values. Only synchronous tables have
// backup workers.
std::vector<Staleness> PoliciesOf(const std::vector<int64_t>& staleness,
                                  uint32_t backup_workers) {
  std::vector<Staleness> policies;
  for (const int64_t steps : staleness) {
    policies.push_back({steps, steps == 0 ? backup_workers : 0});
  }
  return policies;
}

// Returns a random limit for the bytes of gradients, in which a synchronous
// step has room.
size_t ChooseMemory(const std::vector<int64_t>& staleness, uint32_t workers,
                    Dice* dice) {
  if (dice->Chance(50)) return kMuchMemory;
  return (staleness.front() == 0 ? workers : 1) * kPushBytes;
}

}  // namespace

void Tally::Add(const Tally& other) {
  events += other.events;
  acknowledged += other.acknowledged;
  checkpoints += other.checkpoints;
  restores += other.restores;
  refusals += other.refusals;
  deaths += other.deaths;
  lost_letters += other.lost_letters;
  reattached += other.reattached;
}

Simulation::Simulation(uint64_t seed)
    : dice_(seed),
      staleness_(StalenessOf(dice_.Bits())),
      workers_(1 + static_cast<uint32_t>(dice_.Bits() % kMaxWorkers)),
      backup_workers_(workers_ > 1 && dice_.Chance(30) ? 1 : 0),
      model_(ModelOf(PoliciesOf(staleness_, backup_workers_))),
      ledger_(staleness_),
      servers_(&mail_, staleness_.size(), workers_,
               ChooseMemory(staleness_, workers_, &dice_)),
      witness_(
          &ledger_, &servers_, [this](const std::string& line) { Say(line); },
          [this](const std::vector<std::string>& wrong) { Blame(wrong); }),
      trainers_(workers_) {
  SeedRandomDevice(seed);
  RestartAll(1 + dice_.Below(kMostServers), /*is_proper=*/true);
}

Simulation::~Simulation() {
  KillAllClients();
  servers_.KillAll(0);
  while (!ending_.empty()) BuryClients();
}

void Simulation::Run() {
  const uint64_t events = uint64_t{40} << dice_.Below(5);
  for (uint64_t event = 0; event < events && wrong_.empty(); ++event) {
    Settle();
    ++tally_.events;
    if (event % 32 == 31) witness_.CheckAll();
    if (dice_.Chance(4) || !Advance()) Fault();
  }
  Settle();
  is_fair_ = true;
  Say("-- from here on nothing fails --");
  servers_.Spare();
  for (const auto& trainer : trainers_) {
    if (trainer != nullptr) trainer->Resume();
  }
  while (!losses_.empty()) TellLoss();
  if (!servers_.all_proper() || dice_.Chance(60))
    RestartAll(1 + dice_.Below(kMostServers), /*is_proper=*/true);
  GoOn(3);
  Save();
  GoOn(1);
  witness_.CheckAll();
  if (!wrong_.empty()) return;
  KillAllClients();
  RestartAll(1 + dice_.Below(kMostServers), /*is_proper=*/true);
  GoOn(2);
  witness_.CheckAll();
}

Tally Simulation::tally() const {
  Tally tally = tally_;
  tally.deaths = servers_.deaths();
  tally.checkpoints = witness_.checkpoints();
  tally.restores = witness_.restores();
  return tally;
}

std::string Simulation::History() const {
  return absl::StrCat("staleness ", absl::StrJoin(staleness_, ", "), "; ",
                      workers_, " workers, ", backup_workers_,
                      " of them backup\n", absl::StrJoin(history_, "\n"));
}

void Simulation::Say(const std::string& line) {
  history_.push_back(absl::StrCat(tally_.events, ": ", line));
  if (history_.size() > kHistory) history_.pop_front();
}

void Simulation::Blame(const std::vector<std::string>& wrong) {
  if (wrong.empty()) return;
  wrong_.insert(wrong_.end(), wrong.begin(), wrong.end());
  Say(absl::StrCat("WRONG: ", wrong.front()));
}

// Waits until all threads are idle. Also skips the pause of a client that is
// about to repeat a call.
void Simulation::AwaitThreads() {
  const absl::Time limit = absl::Now() + kStuck;
  threads_.Await();
  const auto works = [&](const auto& client) {
    return client != nullptr && client->is_busy() &&
           !mail_.HasOpen(client->id());
  };
  while (works(chief_) || works(savers_[0]) || works(savers_[1]) ||
         std::any_of(trainers_.begin(), trainers_.end(), works)) {
    if (!SkipToNextDeadline(kLongestPause)) usleep(100);
    if (absl::Now() > limit) {
      Blame({"a client neither ends nor makes a call"});
      return KillAllClients();
    }
    threads_.Await();
  }
}

bool Simulation::NoteAnswers() {
  bool has_news = false;
  for (const LetterPtr& letter : mail_.Open()) {
    if (letter->stage != Letter::Stage::kAnswered || letter->is_noted) continue;
    letter->is_noted = true;
    has_news = true;
    if (letter->method == "Push") witness_.NotePush(*letter);
    if (letter->method == "BeginCheckpoint")
      witness_.NoteBegun(*letter, SettledBefore(*letter));
    if (letter->method == "CommitCheckpoint") witness_.NoteCommit(*letter);
    if (letter->is_ghost) mail_.Drop(letter);
  }
  return has_news;
}

const std::set<uint64_t>* Simulation::SettledBefore(
    const Letter& letter) const {
  for (const auto& saver : savers_) {
    if (saver != nullptr && saver->id() == letter.client) {
      return &saver->settled();
    }
  }
  return nullptr;
}

void Simulation::Settle() {
  bool has_news = true;
  while (has_news) {
    AwaitThreads();
    servers_.BuryDead();
    has_news = mail_.ReturnCancelled();
    has_news |= NoteAnswers();
    for (const Mail::Farewell& farewell : mail_.TakeFarewells()) {
      Node* const node = farewell.server < servers_.size()
                             ? servers_.at(farewell.server)
                             : nullptr;
      for (uint32_t rank = 0; rank < workers_ && node != nullptr; ++rank) {
        node->core().Leave({rank, farewell.client});
      }
    }
    has_news |= TakeResults();
  }
  if (!ending_.empty()) BuryClients();
}

bool Simulation::Advance() {
  Actions actions;
  AddLetters(&actions);
  AddCalls(&actions);
  if (actions.empty()) return false;
  actions[dice_.Below(actions.size())]();
  return true;
}

void Simulation::AddLetters(Actions* actions) {
  for (const LetterPtr& letter : mail_.Open()) {
    Node* const node = letter->server < servers_.size()
                           ? servers_.at(letter->server)
                           : nullptr;
    if (letter->stage == Letter::Stage::kSent && node != nullptr) {
      actions->push_back([this, letter, node] {
        Say(absl::StrCat("deliver ", letter->Text()));
        node->Take(letter);
      });
    } else if (letter->stage == Letter::Stage::kAnswered &&
               !IsSuspended(letter->client)) {
      actions->push_back([this, letter] {
        Say(absl::StrCat("return ", letter->Text()));
        mail_.Return(letter);
      });
    }
  }
}

// Does one event of the part without faults. If there is no event, tries again:
// on a busy machine, a thread may only seem idle.
bool Simulation::AdvanceFairly() {
  Settle();
  ++tally_.events;
  if (Advance()) return true;
  LetTimePass();
  const absl::Time limit = absl::Now() + kStuck;
  while (absl::Now() < limit) {
    Settle();
    if (Advance()) return true;
    usleep(1000);
  }
  std::string open;
  for (const LetterPtr& letter : mail_.Open()) {
    absl::StrAppend(&open, "; ", letter->Text());
  }
  Blame(
      {absl::StrCat("nothing can happen any more", open, servers_.Describe())});
  return false;
}

void Simulation::GoOn(uint64_t pushes) {
  counted_.clear();
  int restarts = 0;
  for (int event = 0; wrong_.empty(); ++event) {
    const bool is_done =
        counted_.size() == workers_ &&
        std::all_of(counted_.begin(), counted_.end(),
                    [&](const auto& rank) { return rank.second >= pushes; });
    if (is_done) return Settle();
    if (needs_restart_ || !servers_.all_up()) {
      if (++restarts > kMaxFairRestarts) {
        return Blame({"the training cannot be started again"});
      }
      RestartAll(servers_.size(), /*is_proper=*/true);
    }
    if (event > kMaxFairEvents) Blame({"the training does not go on"});
    if (!AdvanceFairly()) return;
  }
}

// Takes a checkpoint while workers continue. An older attempt may abort the
// first try.
void Simulation::Save() {
  for (int tries = 0; tries < 3 && wrong_.empty(); ++tries) {
    for (auto& saver : savers_) Kill(std::move(saver));
    StartSaver();
    saved_ = absl::UnknownError("the checkpoint does not end");
    int events = 0;
    while ((savers_[0] != nullptr || savers_[1] != nullptr) && wrong_.empty() &&
           events++ < kMaxFairEvents) {
      AdvanceFairly();
    }
    if (saved_.ok() || absl::IsAlreadyExists(saved_)) return;
  }
  Blame({absl::StrCat("no checkpoint is taken: ", saved_.ToString())});
}

}  // namespace penstock::ps
