#include "ps/service/routes.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "ps/wire/shard_key.h"
#include "tensor_service/status.h"

namespace penstock::ps {
namespace {

using grpc::CallbackServerContext;

// Returns the number of the shard that the call names, or nullopt for the
// server's own shard.
absl::StatusOr<absl::optional<uint32_t>> ShardIn(
    const CallbackServerContext& context) {
  const auto found = context.client_metadata().find(kShardKey);
  if (found == context.client_metadata().end()) {
    return absl::optional<uint32_t>();
  }
  uint32_t shard = 0;
  const absl::string_view text(found->second.data(), found->second.size());
  if (!absl::SimpleAtoi(text, &shard)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the metadata ", kShardKey, " is no number"));
  }
  return absl::make_optional(shard);
}

// A reactor for a message of another server. After the answer, helps the
// replica to apply the entries that the message has committed. Deletes itself.
struct ReplicateReactor final : grpc::ServerUnaryReactor {
  void OnDone() override {
    const std::shared_ptr<Shard> helped = std::move(to_help);
    delete this;
    if (helped != nullptr) helped->Help();
  }
  bool InternalInlineable() override { return true; }  // see TicketReactor

  std::shared_ptr<Shard> to_help;  // null if no replica has the message
};

}  // namespace

Routes::Routes(Server* server, CheckpointWriter* writer, Shards* shards)
    : direct_(std::shared_ptr<Server>(), server),
      direct_writer_(std::shared_ptr<CheckpointWriter>(), writer),
      shards_(shards) {}

absl::StatusOr<std::shared_ptr<Calls>> Routes::CallsOf(
    const CallbackServerContext& context) const {
  if (shards_ == nullptr) return direct_;
  const auto shard = ShardIn(context);
  if (!shard.ok()) return shard.status();
  return shards_->CallsOf(*shard);
}

absl::StatusOr<std::shared_ptr<Server>> Routes::ServerOf(
    const CallbackServerContext& context) const {
  if (shards_ == nullptr) return direct_;
  const auto shard = ShardIn(context);
  if (!shard.ok()) return shard.status();
  return shards_->ServerOf(*shard);
}

FindServer Routes::FinderOf(const CallbackServerContext& context) const {
  if (shards_ == nullptr) {
    return [direct = std::shared_ptr<Calls>(direct_)] { return direct; };
  }
  return
      [shards = shards_,
       shard = ShardIn(context)]() -> absl::StatusOr<std::shared_ptr<Calls>> {
        if (!shard.ok()) return shard.status();
        return shards->CallsOf(*shard);
      };
}

absl::optional<uint32_t> Routes::ShardOf(
    const CallbackServerContext& context) const {
  if (shards_ == nullptr) return absl::nullopt;
  const auto shard = ShardIn(context);
  return shard.ok() && shard->has_value() ? *shard : shards_->own_shard();
}

absl::Status Routes::CheckMayDefine(uint64_t replaces) const {
  return shards_ == nullptr ? absl::OkStatus()
                            : shards_->CheckMayDefine(replaces);
}

absl::Status Routes::ClaimFolder(uint64_t replaces) const {
  if (direct_writer_ == nullptr) return absl::OkStatus();
  if (shards_ != nullptr && shards_->HasFolder(replaces)) {
    return absl::OkStatus();
  }
  return direct_writer_->Claim();
}

absl::Status Routes::CheckModel(const Model& model) const {
  return shards_ == nullptr ? absl::OkStatus() : CheckReplicable(model);
}

absl::StatusOr<std::shared_ptr<CheckpointWriter>> Routes::WriterOf(
    const CallbackServerContext& context) const {
  const auto leader = LeaderOf(context);
  if (!leader.ok()) return leader.status();
  if (*leader == nullptr) return direct_writer_;
  return (*leader)->Writer();
}

absl::StatusOr<std::shared_ptr<Shard>> Routes::LeaderOf(
    const CallbackServerContext& context) const {
  if (shards_ == nullptr) return nullptr;
  const auto shard = ShardIn(context);
  if (!shard.ok()) return shard.status();
  return shards_->LeaderOf(*shard);
}

grpc::ServerUnaryReactor* Routes::Replicate(const grpc::ByteBuffer& request,
                                            grpc::ByteBuffer* reply) const {
  auto* const reactor = new ReplicateReactor;
  if (shards_ == nullptr) {
    reactor->Finish(tensor::ToGrpc(absl::FailedPreconditionError(
        "replicate: this server was started without --replicas")));
    return reactor;
  }
  // Does not check the caller here: the replica checks that the sender is the
  // shard's primary.
  reactor->to_help = shards_->Replicate(
      request,
      [reactor, reply](const absl::StatusOr<grpc::ByteBuffer>& answer) {
        if (answer.ok()) *reply = *answer;
        reactor->Finish(tensor::ToGrpc(answer.status()));
      });
  return reactor;
}

}  // namespace penstock::ps
