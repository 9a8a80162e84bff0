#include "ps/shards/shard.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ps/server/refusals.h"
#include "ps/shards/boot_time.h"
#include "ps/wire/shard_key.h"

namespace penstock::ps {
namespace {

// How often leases and applied entries are looked at. A fraction of the
// shortest lease that makes sense.
constexpr absl::Duration kTick = absl::Milliseconds(20);

replication::Options ReplicaOptions(const ShardOptions& options,
                                    const replication::Group& group,
                                    const replication::ReplicaId& self) {
  replication::Options replica;
  replica.group = group;
  replica.self = self;
  replica.lease = options.lease;
  replica.max_log_bytes = options.max_log_bytes;
  replica.patience = options.lease.duration * 1.5;
  return replica;
}

replication::Replica MakeReplica(const replication::Options& options,
                                 bool has_values, bool leads) {
  if (!has_values) return replication::Replica(options);
  return replication::Replica(options, {}, leads);
}

}  // namespace

Shard::Shard(const ShardOptions& options, const replication::Group& group,
             const replication::ReplicaId& self, std::shared_ptr<Server> first,
             bool leads)
    : options_(options),
      group_(group),
      self_(self),
      own_(first.get()),
      replica_(MakeReplica(ReplicaOptions(options, group, self),
                           first != nullptr, leads)),
      server_(std::move(first)) {
  if (server_ == nullptr) return;
  training_view_ = {group.run,
                    server_->training()->tables->placement().epoch()};
}

Shard::~Shard() { Stop(); }

void Shard::Say(const std::string& line) const {
  LogLines(options_.log, {absl::StrCat("shard ", group_.shard, ": ", line)});
}

absl::Status Shard::NotPrimaryLocked() const {
  if (view_.number == 0) {
    return absl::UnavailableError(
        absl::StrCat(kNotPrimary, ": there is no view yet"));
  }
  const replication::ReplicaId& leads = view_.shards[group_.shard].primary;
  return absl::UnavailableError(
      absl::StrCat(kNotPrimary, ": shard ", group_.shard, " is led by ",
                   TextOf(leads), " in view ", view_.number));
}

absl::Status Shard::OnView(const replication::View& view) {
  Due due;
  {
    absl::MutexLock lock(&mu_);
    if (is_stopped_) return Draining();
    if (!is_pumping_) {
      is_pumping_ = true;
      std::thread([self = shared_from_this()] { self->PumpLoop(); }).detach();
    }
    const bool was_primary = primary() != nullptr;
    const uint64_t before = replica_.view();
    absl::Status moved = replica_.OnView(view, BootNow());
    if (replica_.view() != before) {
      view_ = view;
      links_.clear();
      ++generation_;
      incoming_ = {};
      const bool is_primary = primary() != nullptr;
      if (is_primary && !was_primary) BeginReignLocked();
      if (!is_primary && was_primary) EndReignLocked(&due);
    }
    if (!moved.ok()) return moved;
  }
  for (const auto& each : due) each();
  Pump();
  return absl::OkStatus();
}

void Shard::BeginReignLocked() {
  ++reign_;
  inherited_ = replica_.holdings().log.last();
  alive_.clear();
  knows_members_ = false;
  start_at_ = absl::InfiniteFuture();
  Say(absl::StrCat("this server leads it in view ", view_.number, ", after ",
                   inherited_, " entries"));
}

void Shard::EndReignLocked(Due* due) {
  ++reign_;
  if (sending_ != nullptr) sending_->Cancel();
  const absl::Status refusal = NotPrimaryLocked();
  for (auto& [id, ticket] : tickets_) {
    due->push_back([end = ticket.end, refusal] { end(refusal); });
    if (ticket.server == nullptr) continue;
    due->push_back([server = ticket.server, inner = ticket.inner] {
      server->Cancel(inner);
    });
  }
  tickets_.clear();
  parked_.clear();
  pushes_.clear();
  joins_.clear();
  in_log_.clear();
  checked_bytes_ = 0;
  Say(std::string(refusal.message()));
}

absl::optional<replication::ViewFollower::Wish> Shard::Wishes() {
  absl::MutexLock lock(&mu_);
  replication::Primary* const leads = primary();
  if (leads == nullptr) return absl::nullopt;
  replication::ViewFollower::Wish wish;
  wish.shard = group_.shard;
  wish.view = view_.number;
  wish.complete = leads->Complete();
  wish.overdue = leads->Overdue(BootNow());
  if (LeavesToBackupLocked()) {
    wish.overdue = {{self_, std::string(failure_.message())}};
  }
  return wish;
}

absl::StatusOr<std::shared_ptr<Server>> Shard::PrimaryServer() {
  absl::MutexLock lock(&mu_);
  if (primary() == nullptr) return NotPrimaryLocked();
  return server_;
}

std::shared_ptr<Server> Shard::server() {
  absl::MutexLock lock(&mu_);
  return server_;
}

// Learns the members once the server has the entries of earlier primaries. Ends
// the leases of silent workers.
void Shard::ExpireWorkersLocked(absl::Time now) {
  if (primary() == nullptr || server_ == nullptr || fed_ < inherited_) return;
  if (!knows_members_) {
    const auto exchange = server_->Serving(training_view_);
    if (!exchange.ok()) return;
    const MembersImage members = (*exchange)->Members();
    knows_members_ = true;
    for (const MembershipImage::Rank& each : members.membership.ranks) {
      if (!each.required_from.has_value()) continue;
      alive_.insert({{each.worker.rank, each.worker.incarnation}, now});
    }
    const bool waits = !members.membership.assembled && !alive_.empty();
    if (waits) start_at_ = now + options_.assemble_timeout;
  }
  if (now >= start_at_) {
    const bool is_logged = SubmitLocked(EventPayload::Kind::kStart, {});
    if (is_logged) start_at_ = absl::InfiniteFuture();
  }
  for (auto at = alive_.begin(); at != alive_.end();) {
    const WorkerId worker{at->first.first, at->first.second};
    const bool is_lost = now - at->second > options_.worker_lease &&
                         SubmitLocked(EventPayload::Kind::kLost, worker);
    at = is_lost ? alive_.erase(at) : std::next(at);
  }
}

void Shard::Pump() {
  absl::MutexLock lock(&mu_);
  wants_pump_ = true;
}

void Shard::PumpLoop() {
  absl::Time tick = BootNow();
  while (true) {
    Due due;
    {
      absl::MutexLock lock(&mu_);
      mu_.AwaitWithTimeout(absl::Condition(&wants_pump_), kTick);
      if (is_stopped_) {
        is_pumping_ = false;
        return;
      }
      if (BootNow() >= tick) {
        tick = BootNow() + kTick;
        ExpireWorkersLocked(BootNow());
        PollAppliedLocked();
      }
      CollectLocked(&due);
      wants_pump_ = !due.empty();
    }
    for (const auto& each : due) each();
  }
}

void Shard::CollectLocked(Due* due) {
  const absl::Time now = BootNow();
  if (replication::Primary* const leads = primary()) leads->Tick(now);
  CollectParkedLocked(now, due);
  CollectSendsLocked(now, due);
  CollectFeedLocked(now, due);
  CollectSnapshotLocked(now, due);
}

void Shard::CollectParkedLocked(absl::Time now, Due* due) {
  replication::Primary* const leads = primary();
  if (leads == nullptr || parked_.empty()) return;
  const bool may_answer = leads->MayAnswer(now);
  std::deque<Parked> left;
  for (Parked& each : parked_) {
    const bool is_due = each.is_answer ? may_answer : fed_ >= each.fed;
    if (!is_due) {
      left.push_back(std::move(each));
    } else if (each.is_answer) {
      // Asks again immediately before the answer.
      due->push_back(
          [this, reign = reign_, ticket = each.ticket,
           go = std::move(each.go)] { AnswerWhenSure(reign, ticket, go); });
    } else {
      due->push_back(std::move(each.go));
    }
  }
  parked_ = std::move(left);
}

void Shard::EndTracked() {
  absl::MutexLock lock(&mu_);
  --tracked_;
}

void Shard::Stop() {
  Due due;
  std::shared_ptr<Server> server;
  {
    absl::MutexLock lock(&mu_);
    if (is_stopped_) return;
    EndReignLocked(&due);
    is_stopped_ = true;
    if (incoming_.cancellation != nullptr) incoming_.cancellation->Cancel();
    server = server_;
  }
  for (const auto& each : due) each();
  if (server != nullptr && server.get() != own_) server->Drain();
  absl::MutexLock lock(&mu_);
  const auto is_over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return tracked_ == 0 && !is_pumping_;
  };
  mu_.Await(absl::Condition(&is_over));
  server_ = nullptr;
}

}  // namespace penstock::ps
