#include "ps/client/checkpoint.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "ps/client/fanout.h"
#include "ps/client/write_watch.h"
#include "tensor_service/calls.h"
#include "transport/base/bytes_text.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

constexpr int kMaxAttempts = 5;

// One call of TakeCheckpoint().
class Attempts {
 public:
  Attempts(const Connection& connection, const CheckpointOptions& options)
      : connection_(connection),
        options_(options),
        limit_(base::SteadyNow() + options.timeout),
        incremental_(options.incremental),
        all_(connection.channels(), connection.names()),
        coordinator_({connection.channels()[0]}, {connection.NameOf(0)}) {}

  absl::StatusOr<CheckpointResult> Run() {
    absl::StatusOr<CheckpointResult> result = TryUntilInTime();
    if (!incremental_ || !absl::IsFailedPrecondition(result.status())) {
      return result;
    }
    // A server has not, or not any more, what it would go on from.
    Say(absl::StrCat("takes a full one: ", result.status().message()));
    incremental_ = false;
    return TryUntilInTime();
  }

 private:
  absl::StatusOr<CheckpointResult> TryUntilInTime() {
    absl::Status last;
    for (int attempt = 1; attempt <= kMaxAttempts; ++attempt) {
      absl::StatusOr<CheckpointResult> result = Try();
      if (!absl::IsOutOfRange(result.status())) return result;
      last = result.status();
      Say(absl::StrCat("begins again: ", last.message()));
      absl::Status set = SetAhead();
      if (!set.ok()) return set;
    }
    return absl::OutOfRangeError(
        absl::StrCat("checkpoint: in ", kMaxAttempts,
                     " attempts a server was ahead of the step; try again, or "
                     "with longer steps: ",
                     last.message()));
  }

  // Steps are shorter than a call takes: asks for a step that is to come.
  absl::Status SetAhead() {
    const auto version = LargestVersion();
    if (!version.ok()) return version.status();
    ahead_ = 2 * (*version - asked_for_) + 1;
    return absl::OkStatus();
  }

  absl::StatusOr<CheckpointResult> Try() {
    v1::BeginCheckpointRequest begin;
    *begin.mutable_view() = connection_.view();
    begin.set_incremental(incremental_);
    begin.set_keep(options_.keep);
    auto attempts =
        Ask<v1::CheckpointAttempt>(&coordinator_, "BeginCheckpoint", begin);
    if (!attempts.ok()) return attempts.status();
    const v1::CheckpointAttempt& attempt = attempts->front();
    absl::StatusOr<uint64_t> version = LargestVersion();
    if (!version.ok()) return version.status();
    asked_for_ = *version + ahead_;
    Say(absl::StrCat(
        "step ", attempt.step(), ": writes version ", asked_for_,
        attempt.incremental() ? ", what has changed since " : ", all of it",
        attempt.incremental() ? absl::StrCat(attempt.base_step()) : ""));
    auto shards = WriteShards(attempt, asked_for_);
    if (!shards.ok()) return shards.status();
    return Commit(attempt, *shards);
  }

  // Models without synchronous tables pass any.
  absl::StatusOr<uint64_t> LargestVersion() {
    auto reports =
        Ask<v1::ServerReport>(&all_, "Describe", v1::DescribeRequest());
    if (!reports.ok()) return reports.status();
    uint64_t version = 0;
    for (const v1::ServerReport& report : *reports) {
      version = std::max(version, report.version());
    }
    return version;
  }

  absl::StatusOr<std::vector<v1::ShardInfo>> WriteShards(
      const v1::CheckpointAttempt& attempt, uint64_t version) {
    v1::WriteShardRequest write;
    *write.mutable_view() = connection_.view();
    *write.mutable_attempt() = attempt;
    write.set_version(version);
    std::unique_ptr<WriteWatch> watch;
    if (options_.written) {
      watch = std::make_unique<WriteWatch>(connection_, options_.written);
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
    auto replies = Ask<v1::CommitCheckpointReply>(&coordinator_,
                                                  "CommitCheckpoint", commit);
    if (!replies.ok()) return replies.status();
    const auto& removed = replies->front().removed_steps();
    result.removed_steps.assign(removed.begin(), removed.end());
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
      // Servers begin with the same word.
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

  void Say(absl::string_view line) const {
    if (options_.progress) options_.progress(line);
  }

  const Connection& connection_;
  const CheckpointOptions& options_;
  const absl::Time limit_;
  bool incremental_;
  uint64_t asked_for_ = 0;  // the version
  uint64_t ahead_ = 0;      // of the largest one
  Fanout all_;
  Fanout coordinator_;
};

}  // namespace

absl::StatusOr<CheckpointResult> TakeCheckpoint(
    const Connection& connection, const CheckpointOptions& options) {
  return Attempts(connection, options).Run();
}

}  // namespace penstock::ps
