#include "ps/client/checkpoint.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "ps/client/fanout.h"
#include "ps/client/repeated_call.h"
#include "ps/consistency/cut.h"
#include "tensor_service/calls.h"
#include "transport/base/bytes_text.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

constexpr int kMaxAttempts = 5;
// The shortest pause between two requests for the turn, while another caller
// has it.
constexpr absl::Duration kFirstPause = absl::Milliseconds(20);
constexpr absl::Duration kLongestPause = absl::Seconds(1);
// Limits the wait for the end of a turn, and for the end of a hold of steps.
// The turn ends even if nobody waits until the attempt's files are removed.
constexpr absl::Duration kGiveUpTimeout = absl::Seconds(2);
// The time between two renewals of the turn. A turn ends after 30 seconds
// without renewal, so one renewal may be lost.
constexpr absl::Duration kRenewInterval = absl::Seconds(7);
constexpr absl::Duration kRenewTimeout = absl::Seconds(3);
// The interval of requests for the progress. About the redraw interval of a
// progress line.
constexpr absl::Duration kWatchInterval = absl::Milliseconds(250);
// Limits how long the end of a checkpoint waits for the last progress of a
// server.
constexpr absl::Duration kWatchTimeout = absl::Seconds(1);

// Returns the route to the primary of shard 0. Returns an empty list if shards
// are not replicated.
std::vector<Route*> ToFirst(const TrainingConnection& connection) {
  std::vector<Route*> routes = connection.routes();
  if (!routes.empty()) routes.resize(1);
  return routes;
}

// Returns an object that renews the turn of `attempt` at server 0 until it is
// destroyed. Ignores errors: if the attempt loses its turn, its commit fails.
std::unique_ptr<RepeatedCall> KeepTurn(const TrainingConnection& connection,
                                       const v1::CheckpointAttempt& attempt,
                                       std::function<bool()> interrupted) {
  v1::AttendCheckpointRequest renewal;
  *renewal.mutable_view() = connection.view();
  *renewal.mutable_attempt() = attempt;
  auto server = std::make_shared<Fanout>(
      std::vector<std::shared_ptr<grpc::Channel>>{connection.channels()[0]},
      std::vector<std::string>(), std::move(interrupted), ToFirst(connection));
  return std::make_unique<RepeatedCall>(kRenewInterval, [server, renewal] {
    server->Call("AttendCheckpoint", renewal, kRenewTimeout)
        .status()
        .IgnoreError();
  });
}

// Requests the progress of all servers once, and passes the sums to `written`.
void AskForProgress(
    Fanout* servers,
    const std::function<void(uint64_t done, uint64_t total)>& written) {
  const auto replies =
      servers->Call("Describe", v1::DescribeRequest(), kWatchTimeout);
  if (!replies.ok()) return;
  uint64_t done = 0;
  uint64_t total = 0;
  for (const grpc::ByteBuffer& bytes : *replies) {
    v1::ServerReport report;
    if (!tensor::ToProto(bytes, &report).ok()) return;
    done += report.checkpoint_written_bytes();
    // Adds the larger number, because a server that has finished reports a
    // total of 0 and its written bytes.
    total += std::max(report.checkpoint_written_bytes(),
                      report.checkpoint_total_bytes());
  }
  if (total > 0) written(done, total);
}

// The attempts of one TakeCheckpoint() call.
class Attempts {
 public:
  Attempts(const TrainingConnection& connection,
           const CheckpointOptions& options)
      : connection_(connection),
        options_(options),
        limit_(base::SteadyNow() + options.timeout),
        incremental_(options.incremental),
        all_(connection.channels(), connection.names(), options.interrupted,
             connection.routes()),
        watched_(connection.channels(), {}, options.interrupted,
                 connection.routes()),
        coordinator_({connection.channels()[0]}, {connection.NameOf(0)},
                     options.interrupted, ToFirst(connection)) {}

  absl::StatusOr<CheckpointResult> Run() {
    absl::StatusOr<CheckpointResult> result = TryUntilInTime();
    if (incremental_ && absl::IsNotFound(result.status())) {
      // Takes a full checkpoint, because a server lacks the base.
      Say(absl::StrCat("takes a full one: ", result.status().message()));
      incremental_ = false;
      result = TryUntilInTime();
    }
    if (result.ok()) return result;
    if (IsInterrupted()) {
      return absl::CancelledError("checkpoint: ended by the caller");
    }
    const bool is_failure =
        !absl::IsAlreadyExists(result.status()) && !is_waiting_;
    if (is_failure && options_.tells_server) {
      GiveUp({}, result.status().message());
    }
    return result;
  }

 private:
  absl::StatusOr<CheckpointResult> TryUntilInTime() {
    absl::Status last;
    for (int attempt = 1; attempt <= kMaxAttempts; ++attempt) {
      absl::StatusOr<CheckpointResult> result = Try();
      if (!absl::IsOutOfRange(result.status())) return result;
      last = result.status();
      Say(absl::StrCat("begins again: ", last.message()));
    }
    return absl::OutOfRangeError(
        absl::StrCat("checkpoint: in ", kMaxAttempts,
                     " attempts a server was past the cut before it was told: ",
                     last.message()));
  }

  absl::StatusOr<CheckpointResult> Try() {
    const auto attempt = Begin();
    if (!attempt.ok()) return attempt.status();
    if (attempt->committed()) return Joined(*attempt);
    auto keeper = KeepTurn(connection_, *attempt, options_.interrupted);
    absl::StatusOr<CheckpointResult> result = Write(*attempt);
    keeper = nullptr;
    if (!result.ok()) GiveUp(*attempt, "");
    return result;
  }

  // Begins an attempt, and returns it. If another caller has just committed
  // one, returns that attempt.
  absl::StatusOr<v1::CheckpointAttempt> Begin() {
    v1::BeginCheckpointRequest begin;
    *begin.mutable_view() = connection_.view();
    begin.set_incremental(incremental_);
    begin.set_keep(options_.keep);
    if (IsInterrupted()) return absl::CancelledError("interrupted");
    absl::Status described = AddClocks(&begin);
    if (!described.ok()) return described;
    absl::Duration pause = kFirstPause;
    while (true) {
      auto attempts =
          Ask<v1::CheckpointAttempt>(&coordinator_, "BeginCheckpoint", begin);
      if (!attempts.ok()) return attempts.status();
      v1::CheckpointAttempt& attempt = attempts->front();
      is_waiting_ = attempt.running();
      if (!is_waiting_) return std::move(attempt);
      if (!begin.has_waited()) {
        Say(absl::StrCat("waits for step ", attempt.step(),
                         ", which another caller writes"));
      }
      begin.set_has_waited(true);
      if (base::SteadyNow() + pause > limit_) {
        return absl::DeadlineExceededError(
            absl::StrCat("checkpoint: another caller still writes step ",
                         attempt.step(), ": allow more time"));
      }
      Pause(pause);
      if (IsInterrupted()) return absl::CancelledError("interrupted");
      pause = std::min(2 * pause, kLongestPause);
    }
  }

  CheckpointResult Joined(const v1::CheckpointAttempt& attempt) const {
    Say(absl::StrCat("step ", attempt.step(),
                     ": has everything, and another caller has written it"));
    CheckpointResult result;
    result.step = attempt.step();
    result.is_incremental = attempt.incremental();
    result.is_joined = true;
    result.bytes = attempt.bytes();
    return result;
  }

  // Ends the turn early, so that other callers need not wait for the end of the
  // lease. If `failure` is not empty, server 0 records it as the reason why
  // there is no checkpoint.
  void GiveUp(const v1::CheckpointAttempt& attempt, absl::string_view failure) {
    v1::AttendCheckpointRequest give_up;
    *give_up.mutable_view() = connection_.view();
    *give_up.mutable_attempt() = attempt;
    give_up.set_give_up(true);
    give_up.set_failure(std::string(failure));
    Fanout server({connection_.channels()[0]}, {}, /*interrupted=*/nullptr,
                  ToFirst(connection_));
    server.Call("AttendCheckpoint", give_up, kGiveUpTimeout)
        .status()
        .IgnoreError();
  }

  absl::StatusOr<CheckpointResult> Write(const v1::CheckpointAttempt& attempt) {
    const auto cut = ChooseCut();
    if (!cut.ok()) {
      EndHold();
      return cut.status();
    }
    Say(absl::StrCat(
        "step ", attempt.step(), ": writes ",
        cut->has_version() ? absl::StrCat("version ", cut->version(), ", ")
                           : "",
        attempt.incremental()
            ? absl::StrCat("what has changed since ", attempt.base_step())
            : "all of it"));
    auto shards = WriteShards(attempt, *cut);
    if (!shards.ok()) {
      EndHold();  // a server may not have reached its write
      return shards.status();
    }
    return Commit(attempt, *shards);
  }

  // Adds the clock of each rank to the request: the rank's highest clock at any
  // server. Only pushes count, because a rank that only joined adds nothing to
  // a checkpoint.
  absl::Status AddClocks(v1::BeginCheckpointRequest* begin) {
    auto reports =
        Ask<v1::ServerReport>(&all_, "Describe", v1::DescribeRequest());
    if (!reports.ok()) return reports.status();
    std::map<uint32_t, uint64_t> clocks;
    for (const v1::ServerReport& report : *reports) {
      for (const v1::WorkerReport& worker : report.workers()) {
        uint64_t& clock = clocks[worker.rank()];
        clock = std::max(clock, worker.pushed());
      }
    }
    for (const auto& [rank, clock] : clocks) {
      v1::WorkerClock* const added = begin->add_clocks();
      added->mutable_worker()->set_rank(rank);
      added->set_clock(clock);
    }
    return absl::OkStatus();
  }

  // Chooses the checkpoint's cut. Meanwhile holds all servers, so that no
  // server passes the cut.
  absl::StatusOr<v1::CutPoint> ChooseCut() {
    v1::HoldStepsRequest hold;
    *hold.mutable_view() = connection_.view();
    auto replies = Ask<v1::HoldStepsReply>(&all_, "HoldSteps", hold);
    if (!replies.ok()) return replies.status();
    std::vector<HeldSteps> servers;
    for (const v1::HoldStepsReply& reply : *replies) {
      HeldSteps& server = servers.emplace_back();
      server.version = reply.version();
      for (const v1::WorkerClock& begun : reply.begun()) {
        server.begun.push_back({{begun.worker().rank(), 0}, begun.clock()});
      }
    }
    const CutPoint cut =
        FirstCutOf(servers, connection_.least_staleness() == 0);
    v1::CutPoint message;
    if (cut.version.has_value()) message.set_version(*cut.version);
    for (const RankClock& clock : cut.clocks) {
      v1::WorkerClock* const added = message.add_clocks();
      added->mutable_worker()->set_rank(clock.worker.rank);
      added->set_clock(clock.clock);
    }
    return message;
  }

  // Ends the hold early. Servers also end a hold themselves, after a timeout.
  void EndHold() {
    v1::HoldStepsRequest release;
    *release.mutable_view() = connection_.view();
    release.set_release(true);
    Fanout servers(connection_.channels(), {}, /*interrupted=*/nullptr,
                   connection_.routes());
    servers.Call("HoldSteps", release, kGiveUpTimeout).status().IgnoreError();
  }

  absl::StatusOr<std::vector<v1::ShardInfo>> WriteShards(
      const v1::CheckpointAttempt& attempt, const v1::CutPoint& cut) {
    v1::WriteShardRequest write;
    *write.mutable_view() = connection_.view();
    *write.mutable_attempt() = attempt;
    *write.mutable_cut() = cut;
    std::unique_ptr<RepeatedCall> watch;
    if (options_.written) {
      watch = std::make_unique<RepeatedCall>(kWatchInterval, [this] {
        AskForProgress(&watched_, options_.written);
      });
    }
    return Ask<v1::ShardInfo>(&all_, "WriteShard", write);
  }

  absl::StatusOr<CheckpointResult> Commit(
      const v1::CheckpointAttempt& attempt,
      const std::vector<v1::ShardInfo>& shards) {
    CheckpointResult result;
    result.step = attempt.step();
    result.is_incremental = attempt.incremental();
    v1::CommitCheckpointRequest commit;
    *commit.mutable_view() = connection_.view();
    *commit.mutable_attempt() = attempt;
    for (const v1::ShardInfo& shard : shards) {
      *commit.add_shards() = shard;
      result.bytes += shard.bytes();
    }
    // Cannot be interrupted, because the caller must learn if there is a
    // checkpoint.
    Fanout server({connection_.channels()[0]}, {connection_.NameOf(0)},
                  /*interrupted=*/nullptr, ToFirst(connection_));
    auto replies =
        Ask<v1::CommitCheckpointReply>(&server, "CommitCheckpoint", commit);
    if (!replies.ok()) return replies.status();
    const auto& removed = replies->front().removed_steps();
    result.removed_steps.assign(removed.begin(), removed.end());
    result.checkpoints = replies->front().checkpoints();
    result.checkpoints_bytes = replies->front().checkpoints_bytes();
    Say(absl::StrCat("step ", result.step, ": done, ",
                     base::BytesText(result.bytes)));
    return result;
  }

  template <typename Reply>
  absl::StatusOr<std::vector<Reply>> Ask(
      Fanout* servers, const std::string& method,
      const google::protobuf::MessageLite& request) {
    auto bytes = servers->Call(method, request, limit_ - base::SteadyNow());
    if (!bytes.ok()) {
      // Remove the repeated prefix: a server's message also begins with
      // "checkpoint: ".
      return absl::Status(
          bytes.status().code(),
          absl::StrCat("checkpoint: ",
                       absl::StrReplaceAll(bytes.status().message(),
                                           {{": checkpoint: ", ": "}})));
    }
    std::vector<Reply> replies(bytes->size());
    for (size_t i = 0; i < replies.size(); ++i) {
      absl::Status status = tensor::ToProto((*bytes)[i], &replies[i]);
      if (!status.ok()) return status;
    }
    return replies;
  }

  bool IsInterrupted() const {
    return options_.interrupted && options_.interrupted();
  }

  // Sleeps for `pause`, or until interrupted.
  void Pause(absl::Duration pause) const {
    const absl::Time end = base::SteadyNow() + pause;
    while (base::SteadyNow() < end && !IsInterrupted()) {
      absl::SleepFor(std::min(end - base::SteadyNow(), tensor::kAskEvery));
    }
  }

  void Say(absl::string_view line) const {
    if (options_.progress) options_.progress(line);
  }

  const TrainingConnection& connection_;
  const CheckpointOptions& options_;
  const absl::Time limit_;
  bool incremental_;
  bool is_waiting_ = false;  // another caller has the turn
  Fanout all_;
  Fanout watched_;  // the watching thread's
  Fanout coordinator_;
};

}  // namespace

absl::StatusOr<CheckpointResult> TakeCheckpoint(
    const TrainingConnection& connection, const CheckpointOptions& options) {
  return Attempts(connection, options).Run();
}

}  // namespace penstock::ps
