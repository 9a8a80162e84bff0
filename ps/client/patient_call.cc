#include "ps/client/patient_call.h"

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "transport/base/limited_log.h"
#include "transport/base/log.h"
#include "transport/base/mutex.h"
#include "transport/base/printable.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

constexpr absl::Duration kFirstWait = absl::Milliseconds(10);
constexpr absl::Duration kLongestWait = absl::Seconds(1);
// The interval at which a waiting call looks for a new primary of its shard.
constexpr absl::Duration kLookEvery = absl::Milliseconds(50);
constexpr int kMaxRejoins = 10;

// Returns true if a message exceeds gRPC's limit. Searches for a text of
// message_size_filter.cc in gRPC 1.51.
bool IsTooLong(const absl::Status& status) {
  return absl::StrContains(status.message(), "message larger than max");
}

bool IsTransient(const absl::Status& status) {
  return absl::IsUnavailable(status) ||
         (absl::IsResourceExhausted(status) && !IsTooLong(status));
}

void Warn(const std::string& line) {
  static base::Mutex* const mu = new base::Mutex();
  static auto* const log = new base::LimitedLog();
  base::MutexLock lock(mu);
  log->Warning(line);
}

}  // namespace

struct PatientCall::State : std::enable_shared_from_this<State> {
  CallLoop* loop;
  CallLoop::Request request;
  Rejoin rejoin;
  Done done;
  Notes notes;
  absl::Time started;
  absl::Time next_note;
  int attempts = 0;
  int rejoins = 0;
  uint64_t moves = 0;  // of the shard, before the last attempt
  absl::Duration wait = kFirstWait;
  std::minstd_rand random;

  void Attempt() {
    ++attempts;
    moves = Moves();
    loop->Call(request, [self = shared_from_this()](CallLoop::Reply reply) {
      self->OnReply(std::move(reply));
    });
  }

  uint64_t Moves() const {
    return request.route == nullptr ? 0 : request.route->moves();
  }

  // Attempts the call at `time`. Attempts earlier if the shard has moved.
  void AttemptAt(absl::Time time) {
    const absl::Time now = base::SteadyNow();
    if (now >= time || Moves() != moves || loop->stopped()) return Attempt();
    const absl::Time look =
        request.route == nullptr ? time : std::min(time, now + kLookEvery);
    loop->At(look,
             [self = shared_from_this(), time] { self->AttemptAt(time); });
  }

  void OnReply(CallLoop::Reply reply) {
    if (reply.ok()) return done(std::move(reply), attempts);
    if (loop->stopped()) {
      return done(absl::CancelledError("its caller ends"), attempts);
    }
    if (IsTransient(reply.status())) return Again(reply.status());
    const bool may_rejoin = absl::IsFailedPrecondition(reply.status()) &&
                            rejoin && rejoins < kMaxRejoins;
    if (!may_rejoin) return done(std::move(reply), attempts);
    ++rejoins;
    rejoin([self = shared_from_this(),
            why = reply.status()](const absl::Status& joined) {
      if (joined.ok()) return self->Again(why);
      self->done(joined, self->attempts);
    });
  }

  void Note(const absl::Status& why) {
    const absl::Time now = base::SteadyNow();
    if (now < next_note) return;
    next_note = now + notes.every;
    const std::string line = absl::StrCat(
        "ps: ",
        notes.what ? notes.what()
                   : request.path.substr(request.path.rfind('/') + 1),
        ": repeated since ",
        absl::FormatDuration(absl::Trunc(now - started, absl::Seconds(1))),
        ", ", attempts, " attempts, for at most ",
        absl::FormatDuration(
            absl::Trunc(request.deadline - now, absl::Seconds(1))),
        " more: ", base::Printable(why.message(), base::kMaxLogLineBytes));
    if (notes.log) return notes.log(line);
    Warn(line);
  }

  void Again(const absl::Status& why) {
    request.posted = nullptr;  // the last attempt may still write there
    if (attempts == 1) random.seed(std::random_device()());
    std::uniform_real_distribution<double> part(0.5, 1);
    const absl::Time next = base::SteadyNow() + wait * part(random);
    wait = std::min(wait * 2, kLongestWait);
    if (next >= request.deadline) {
      return done(absl::Status(why.code(),
                               absl::StrCat(why.message(), "; gave up after ",
                                            attempts, " attempts")),
                  attempts);
    }
    Note(why);
    AttemptAt(next);
  }
};

void PatientCall::Start(CallLoop* loop, CallLoop::Request request,
                        Rejoin rejoin, Done done, Notes notes) {
  auto state = std::make_shared<State>();
  state->loop = loop;
  state->request = std::move(request);
  state->rejoin = std::move(rejoin);
  state->done = std::move(done);
  state->started = base::SteadyNow();
  state->next_note = state->started + notes.after;
  state->notes = std::move(notes);
  state->Attempt();
}

}  // namespace penstock::ps
