#include "ps/shards/shards.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "ps/server/refusals.h"
#include "ps/wire/shard_key.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

using replication::ReplicaId;
using replication::ShardReplicas;

bool Holds(const ShardReplicas& shard, const ReplicaId& replica) {
  const auto has = [&](const std::vector<ReplicaId>& all) {
    return std::find(all.begin(), all.end(), replica) != all.end();
  };
  return shard.primary == replica || has(shard.backups) || has(shard.joiners);
}

}  // namespace

absl::Status CheckReplicable(const Model& model) {
  for (const TableSpec& table : model.tables) {
    const auto* rows = absl::get_if<SparseSpec>(&table.rows);
    if (rows == nullptr) continue;
    const char* const option =
        rows->min_count > 1                                  ? "min_count"
        : rows->time_to_live < absl::InfiniteDuration()      ? "time_to_live"
        : rows->max_rows > 0                                 ? "max_rows"
        : rows->above_budget != sparse::AboveBudget::kRefuse ? "above_budget"
                                                             : nullptr;
    if (option == nullptr) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "define: table ", base::Printable(table.name, 100), " has ", option,
        ", by which servers drop rows on their own; remove it, or start the "
        "servers without --replicas"));
  }
  return absl::OkStatus();
}

Server::Options ForReplica(Server::Options options) {
  options.membership.lease = absl::InfiniteDuration();
  options.membership.assemble_timeout = absl::InfiniteDuration();
  options.closes_cuts = false;
  return options;
}

// Handles the calls before the first view. Accepts joins, because the first
// primary begins with the members of its Server.
class Shards::BeforeView final : public Calls {
 public:
  BeforeView(Server* own, absl::Duration lease) : own_(own), lease_(lease) {}

  uint64_t StartJoin(const View& view, const WorkerId& worker,
                     JoinCallback callback) override {
    auto joined = own_->Join(view, worker);
    if (joined.ok()) joined->lease = lease_;
    callback(joined);
    return 0;
  }
  absl::Status Heartbeat(uint64_t run, const WorkerId& worker) override {
    return own_->Heartbeat(run, worker);
  }
  void Leave(const WorkerId& worker, uint64_t run) override {
    own_->Leave(worker, run);
  }
  void Lost(const WorkerId& worker, uint64_t run) override {
    own_->Lost(worker, run);
  }
  uint64_t Push(const View&, const WorkerId&, uint64_t, const tensor::Bundle&,
                PushCallback callback, bool) override {
    callback(absl::UnavailableError(
        absl::StrCat(kNotPrimary, ": there is no view yet")));
    return 0;
  }
  uint64_t Pull(const View&, const Exchange::PullSpec&,
                PullCallback callback) override {
    callback(absl::UnavailableError(
        absl::StrCat(kNotPrimary, ": there is no view yet")));
    return 0;
  }
  void Help() override {}
  void Cancel(uint64_t) override {}

 private:
  Server* const own_;
  const absl::Duration lease_;
};

Shards::Shards(ShardOptions options, ReplicaId self, Server* own)
    : options_(std::move(options)),
      self_(std::move(self)),
      own_(own),
      before_view_(std::make_shared<BeforeView>(own, options_.worker_lease)) {}

Shards::~Shards() { Stop(); }

void Shards::Stop() {
  std::map<uint32_t, ShardPtr> shards;
  std::vector<std::thread> stopping;
  {
    absl::MutexLock lock(&mu_);
    if (is_stopped_) return;
    is_stopped_ = true;
    shards = shards_;
    stopping.swap(stopping_);
  }
  options_.peers->Stop();
  for (const auto& [number, shard] : shards) shard->Stop();
  for (std::thread& each : stopping) each.join();
}

std::vector<Shards::ShardPtr> Shards::all() const {
  absl::MutexLock lock(&mu_);
  std::vector<ShardPtr> shards;
  for (const auto& [number, shard] : shards_) shards.push_back(shard);
  return shards;
}

absl::optional<uint64_t> Shards::run() const {
  const auto training = own_->training();
  if (training == nullptr || !own_->has_values()) return absl::nullopt;
  return training->run;
}

absl::optional<uint32_t> Shards::own_shard() const {
  const auto training = own_->training();
  if (training == nullptr) return absl::nullopt;
  return training->server;
}

bool Shards::HasOwnValuesLocked(uint64_t run, size_t shard) const {
  const auto training = own_->training();
  return training != nullptr && training->run == run &&
         training->server == shard && own_->has_values();
}

absl::Status Shards::CheckViewLocked(const replication::View& view) const {
  if (is_stopped_) return Draining();
  absl::Status wrong = replication::CheckView(view);
  if (!wrong.ok()) return wrong;
  if (view.number < view_.number) {
    return absl::FailedPreconditionError(absl::StrCat(
        "view ", view.number, " comes after view ", view_.number,
        "; views never go back. Was the store of the views restored?"));
  }
  if (view.number == view_.number && !(view == view_)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "there are two views ", view.number, "; their store is split"));
  }
  for (size_t at = 0; at < view.shards.size(); ++at) {
    if (view.shards[at].primary != self_) continue;
    const auto held = shards_.find(static_cast<uint32_t>(at));
    const bool holds =
        held != shards_.end() && held->second->group().run == view.run;
    if (holds || HasOwnValuesLocked(view.run, at)) continue;
    return absl::UnavailableError(
        absl::StrCat("view ", view.number, ": this server leads shard ", at,
                     ", and does not have its values yet"));
  }
  return absl::OkStatus();
}

absl::Status Shards::OnView(const replication::View& view) {
  std::vector<ShardPtr> dropped;
  std::vector<ShardPtr> held;
  {
    absl::MutexLock lock(&mu_);
    absl::Status wrong = CheckViewLocked(view);
    if (!wrong.ok()) return wrong;
    view_ = view;
    dropped = HoldLocked(view);
    for (const auto& [number, shard] : shards_) held.push_back(shard);
    for (ShardPtr& each : dropped) {
      stopping_.emplace_back([shard = std::move(each)] { shard->Stop(); });
    }
  }
  absl::Status first;
  for (const ShardPtr& shard : held) {
    absl::Status moved = shard->OnView(view);
    if (first.ok()) first = moved;
  }
  return first;
}

// Makes the process's own shard once it has its first values. Removes and
// returns the shards that the view gives to other processes. All other shards
// are made by the first message of their primaries, because only a primary
// knows the model.
std::vector<Shards::ShardPtr> Shards::HoldLocked(
    const replication::View& view) {
  std::vector<ShardPtr> dropped;
  for (auto at = shards_.begin(); at != shards_.end();) {
    const bool stays = at->second->group().run == view.run &&
                       at->first < view.shards.size() &&
                       Holds(view.shards[at->first], self_);
    if (stays) {
      ++at;
      continue;
    }
    dropped.push_back(at->second);
    at = shards_.erase(at);
  }
  const auto training = own_->training();
  if (training == nullptr) return dropped;
  const uint32_t own = training->server;
  const bool is_missing = shards_.count(own) == 0 && own < view.shards.size() &&
                          view.shards[own].primary == self_ &&
                          HasOwnValuesLocked(view.run, own);
  if (!is_missing) return dropped;
  ServerDefinition definition;
  definition.model = training->tables->model().model();
  definition.servers = training->tables->placement().servers();
  const replication::Group group{view.run, FingerprintOf(definition),
                                 options_.build, own};
  // Makes a pointer that owns nothing, because the process owns the server.
  std::shared_ptr<Server> values(std::shared_ptr<Server>(), own_);
  shards_[own] = std::make_shared<Shard>(options_, group, self_, values, true);
  return dropped;
}

std::vector<Shards::Request> Shards::Requests() {
  std::vector<Request> requests;
  for (const ShardPtr& shard : all()) {
    absl::optional<Request> request = shard->Requests();
    if (request.has_value()) requests.push_back(*std::move(request));
  }
  return requests;
}

std::shared_ptr<Shard> Shards::Find(uint32_t shard) const {
  absl::MutexLock lock(&mu_);
  const auto found = shards_.find(shard);
  return found == shards_.end() ? nullptr : found->second;
}

bool Shards::IsBeforeViewLocked(absl::optional<uint32_t> shard) const {
  const auto training = own_->training();
  const bool is_own =
      !shard.has_value() || (training != nullptr && *shard == training->server);
  if (view_.number == 0) return is_own;
  return is_own && training != nullptr && training->run != view_.run;
}

// Returns true if only an older run of this process had the shard.
bool Shards::IsLostLocked(absl::optional<uint32_t> shard) const {
  const auto is_lost = [this](const ShardReplicas& each) {
    return each.primary.server == self_.server && each.primary != self_ &&
           each.backups.empty();
  };
  if (!shard.has_value()) {
    return std::any_of(view_.shards.begin(), view_.shards.end(), is_lost);
  }
  return *shard < view_.shards.size() && is_lost(view_.shards[*shard]);
}

absl::Status Shards::NotHereLocked(absl::optional<uint32_t> shard) const {
  const std::string which =
      shard.has_value() ? absl::StrCat("shard ", *shard) : "its own shard";
  if (IsLostLocked(shard)) {
    return absl::DataLossError(
        absl::StrCat("this server was restarted and has lost ", which,
                     ", and no other server had it; restore a checkpoint"));
  }
  const bool is_known = shard.has_value() && *shard < view_.shards.size();
  return absl::UnavailableError(absl::StrCat(
      kNotPrimary, ": this server does not hold ", which, " in view ",
      view_.number,
      is_known ? absl::StrCat("; ", TextOf(view_.shards[*shard].primary),
                              " leads it")
               : ""));
}

absl::StatusOr<std::shared_ptr<Calls>> Shards::CallsOf(
    absl::optional<uint32_t> shard) {
  absl::MutexLock lock(&mu_);
  if (IsBeforeViewLocked(shard)) return before_view_;
  if (!shard.has_value()) shard = own_shard();
  if (shard.has_value()) {
    const auto found = shards_.find(*shard);
    if (found != shards_.end()) return found->second->calls();
  }
  return NotHereLocked(shard);
}

absl::StatusOr<std::shared_ptr<Server>> Shards::ServerOf(
    absl::optional<uint32_t> shard) {
  {
    absl::MutexLock lock(&mu_);
    if (IsBeforeViewLocked(shard)) {
      return std::shared_ptr<Server>(std::shared_ptr<Server>(), own_);
    }
  }
  const auto leader = LeaderOf(shard);
  if (!leader.ok()) return leader.status();
  return (*leader)->PrimaryServer();
}

absl::StatusOr<std::shared_ptr<Shard>> Shards::LeaderOf(
    absl::optional<uint32_t> shard) {
  ShardPtr holder;
  {
    absl::MutexLock lock(&mu_);
    if (IsBeforeViewLocked(shard)) {
      return absl::UnavailableError(
          absl::StrCat(kNotPrimary, ": there is no view yet"));
    }
    if (!shard.has_value()) shard = own_shard();
    const auto found = shard.has_value() ? shards_.find(*shard) : shards_.end();
    if (found == shards_.end()) return NotHereLocked(shard);
    holder = found->second;
  }
  absl::Status leads = holder->PrimaryServer().status();
  if (!leads.ok()) return leads;
  return holder;
}

absl::Status Shards::CheckMayDefine(uint64_t replaces) {
  absl::MutexLock lock(&mu_);
  const absl::optional<uint32_t> own = own_shard();
  const bool leads = own.has_value() && *own < view_.shards.size() &&
                     view_.shards[*own].primary == self_;
  const bool may = leads || IsBeforeViewLocked(own) || IsLostLocked(own) ||
                   (replaces != 0 && replaces == view_.run);
  return may ? absl::OkStatus() : NotHereLocked(own);
}

bool Shards::HasFolder(uint64_t replaces) {
  absl::MutexLock lock(&mu_);
  if (view_.shards.empty() || IsLostLocked(0)) return false;
  if (view_.shards[0].primary == self_) return true;
  // Returns true while the view of a new run has not arrived, because a
  // definition has replaced the run.
  const auto training = own_->training();
  const bool is_replaced = training != nullptr && training->run != view_.run;
  return is_replaced || (replaces != 0 && replaces == view_.run);
}

// Returns the replica for a message. The first message from a shard's primary
// makes a replica, which has no values yet.
absl::StatusOr<Shards::ShardPtr> Shards::HolderOf(
    const ReplicateMessage& message) {
  const replication::Group& group = message.envelope.group;
  absl::MutexLock lock(&mu_);
  if (is_stopped_) return Draining();
  const auto found = shards_.find(group.shard);
  if (found != shards_.end()) return found->second;
  if (view_.number != message.envelope.view) {
    return absl::UnavailableError(
        absl::StrCat("view ", message.envelope.view, " has not arrived at ",
                     TextOf(self_), ", which is in view ", view_.number));
  }
  const replication::Group mine{view_.run, group.model, options_.build,
                                group.shard};
  absl::Status same = CheckSameGroup(mine, group);
  if (!same.ok()) return same;
  const bool is_asked =
      group.shard < view_.shards.size() &&
      view_.shards[group.shard].primary == message.envelope.from &&
      Holds(view_.shards[group.shard], self_);
  if (!is_asked) {
    return absl::PermissionDeniedError(
        absl::StrCat(TextOf(message.envelope.from), " does not lead shard ",
                     group.shard, " in view ", view_.number));
  }
  auto joiner = std::make_shared<Shard>(options_, mine, self_, nullptr, false);
  absl::Status joined = joiner->OnView(view_);
  if (!joined.ok()) return joined;
  shards_[group.shard] = joiner;
  return joiner;
}

std::shared_ptr<Shard> Shards::Replicate(const grpc::ByteBuffer& request,
                                         const ReplyCallback& callback) {
  absl::StatusOr<ReplicateMessage> message = MessageIn(request);
  auto holder = message.ok() ? HolderOf(*message) : message.status();
  if (!holder.ok()) {
    callback(holder.status());
    return nullptr;
  }
  (*holder)->Handle(*std::move(message),
                    [callback, keep = *holder](
                        const absl::StatusOr<replication::Answer>& answer) {
                      if (!answer.ok()) return callback(answer.status());
                      callback(ToBytes(*answer));
                    });
  return *std::move(holder);
}

}  // namespace penstock::ps
