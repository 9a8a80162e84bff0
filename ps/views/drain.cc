#include <string>

#include "absl/strings/str_cat.h"
#include "ps/membership/agreements.h"
#include "ps/membership/moves.h"
#include "ps/replication/replica_list.h"
#include "ps/replication/view_wire.h"
#include "ps/views/move_command.h"
#include "ps/views/moving.h"
#include "transport/base/steady_time.h"

namespace penstock::ps::views {
namespace {

using membership::v1::Move;
using membership::v1::Server;
using replication::ReplicaId;

absl::Status CheckEnoughStay(const Situation& now, const Server& server) {
  size_t stay = 0;
  for (const ReplicaId& id : now.live) {
    const bool leaves =
        id == IdOf(server) || replication::Has(now.requests.leaving, id);
    stay += leaves ? 0 : 1;
  }
  if (stay >= now.copies) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "without ", NameOf(server), ", ", stay,
      stay == 1 ? " server" : " servers", " would be left for the ", now.copies,
      " copies of each shard: start another server first"));
}

// The move of all shards away from a leaving server.
class Drain {
 public:
  Drain(const MovingOptions& options, MoveCommand* command,
        const Server& server)
      : options_(options), command_(*command), server_(server) {}

  absl::Status Run() {
    if (!holds_nothing()) {
      absl::Status status = CheckEnoughStay(command_.now(), server_);
      if (!status.ok()) return status;
    }
    absl::Status status =
        command_.RetryWrite([&] { return Mark(MarkLasts::kWithCommand); });
    if (!status.ok()) return status;
    last_seen_ = base::SteadyNow();
    absl::StatusOr<bool> is_empty = false;
    while (is_empty.ok() && !*is_empty) {
      status = command_.Await([&] { return Look(); });
      if (!status.ok()) return status;
      status = command_.RetryWrite([&] { return Mark(MarkLasts::kForRun); });
      if (!status.ok()) return status;
      is_empty = IsEmptyInNewestView();
    }
    return is_empty.status();
  }

  // Adds to an error the advice to keep the server running.
  absl::Status Explain(const absl::Status& status) const {
    const auto last = ShardWithoutOther(command_.now(), server_.address());
    if (status.ok() || !last) return status;
    return {status.code(), absl::StrCat(status.message(), ". ", NameOf(server_),
                                        " has the last copy of shard ", *last,
                                        ": do not stop it")};
  }

 private:
  using MarkLasts = membership::MarkLasts;

  bool holds_nothing() const {
    const auto& view = command_.now().view;
    return !view || replication::PartsOf(*view, IdOf(server_)) == 0;
  }
  absl::Status Mark(MarkLasts lasts) {
    return membership::MarkLeaving(command_.registry(), server_, lasts,
                                   command_.claim());
  }
  // Reads the newest view from etcd, because now() may be older. Returns true
  // if the server has no replica and gets none: etcd refuses each later view
  // whose proposer does not know the mark.
  absl::StatusOr<bool> IsEmptyInNewestView() {
    const auto newest = membership::ReadView(command_.registry());
    if (!newest.ok()) return newest.status();
    if (!newest->has_value()) return true;
    const auto view = replication::FromBytes((*newest)->decision());
    if (!view.ok()) return view.status();
    return replication::PartsOf(*view, IdOf(server_)) == 0;
  }
  // Returns true once the server has no replica in now().
  absl::StatusOr<bool> Look() {
    const Situation& now = command_.now();
    const absl::Time time = base::SteadyNow();
    if (holds_nothing()) return true;
    if (replication::Has(now.live, IdOf(server_)) || !command_.SeesEtcd()) {
      last_seen_ = time;
    }
    if (time - last_seen_ > options_.gone_after) {
      return absl::AbortedError(absl::StrCat(
          NameOf(server_),
          " has ended, or lost etcd, before it held nothing: backups take "
          "over. Look at penstock ps status"));
    }
    // Writes the request again if the command has lost the right to move shards
    // and claimed it again.
    if (!replication::Has(now.requests.leaving, IdOf(server_))) {
      Mark(MarkLasts::kWithCommand).IgnoreError();
    }
    return false;
  }

  const MovingOptions& options_;
  MoveCommand& command_;
  const Server& server_;
  absl::Time last_seen_;
};

}  // namespace

absl::Status DrainServer(const MovingOptions& options,
                         const std::string& server) {
  MoveCommand command(options);
  absl::Status status = command.Begin(Move::DRAIN);
  if (!status.ok()) return status;
  const auto leaves = command.Registered(server);
  if (!leaves.ok()) return leaves.status();
  status = command.CheckReplicated();
  if (!status.ok()) return status;
  Drain drain(options, &command, *leaves);
  return drain.Explain(drain.Run());
}

}  // namespace penstock::ps::views
