#include "ps/replication/view_wire.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::ps::replication {
namespace {

// The maximum size of a view within all limits: a name with its length and an
// incarnation for each replica.
constexpr size_t kMaxBytes = kMaxShards * kMaxReplicas * (kMaxServerName + 32);

void ToMessage(const ReplicaId& replica, v1::Replica* message) {
  message->set_server(replica.server);
  message->set_incarnation(replica.incarnation);
}

ReplicaId FromMessage(const v1::Replica& message) {
  return {message.server(), message.incarnation()};
}

ShardReplicas FromMessage(const v1::ShardReplicas& message) {
  ShardReplicas shard;
  shard.primary = FromMessage(message.primary());
  for (const v1::Replica& backup : message.backups()) {
    shard.backups.push_back(FromMessage(backup));
  }
  for (const v1::Replica& joiner : message.joiners()) {
    shard.joiners.push_back(FromMessage(joiner));
  }
  return shard;
}

}  // namespace

v1::ShardView ToMessage(const View& view) {
  v1::ShardView message;
  message.set_run(view.run);
  message.set_number(view.number);
  for (const ShardReplicas& shard : view.shards) {
    v1::ShardReplicas* each = message.add_shards();
    ToMessage(shard.primary, each->mutable_primary());
    for (const ReplicaId& backup : shard.backups) {
      ToMessage(backup, each->add_backups());
    }
    for (const ReplicaId& joiner : shard.joiners) {
      ToMessage(joiner, each->add_joiners());
    }
  }
  return message;
}

absl::StatusOr<View> FromMessage(const v1::ShardView& message) {
  View view;
  view.run = message.run();
  view.number = message.number();
  for (const v1::ShardReplicas& shard : message.shards()) {
    view.shards.push_back(FromMessage(shard));
  }
  if (absl::Status wrong = CheckView(view); !wrong.ok()) return wrong;
  return view;
}

std::string ToBytes(const View& view) {
  return ToMessage(view).SerializeAsString();
}

absl::StatusOr<View> FromBytes(absl::string_view bytes) {
  if (bytes.size() > kMaxBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a view of ", bytes.size(), " bytes, more than ", kMaxBytes));
  }
  v1::ShardView message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes.size(), " bytes that are no view"));
  }
  return FromMessage(message);
}

}  // namespace penstock::ps::replication
