#include "ps/views/view_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace penstock::ps::views {
namespace {

using replication::ReplicaId;

std::string Listed(absl::string_view role,
                   const std::vector<ReplicaId>& replicas) {
  if (replicas.empty()) return "";
  return absl::StrCat(
      ", ", role, " ",
      absl::StrJoin(replicas, " ", [](std::string* out, const ReplicaId& id) {
        absl::StrAppend(out, id.server);
      }));
}

}  // namespace

std::string TextOfShard(const replication::View& view, size_t shard) {
  const replication::ShardReplicas& replicas = view.shards[shard];
  return absl::StrCat("shard ", shard, " at ", replicas.primary.server,
                      Listed("backup", replicas.backups),
                      Listed("joins", replicas.joiners));
}

std::string TextOf(const replication::View& view, size_t shards) {
  std::string text = absl::StrCat("view ", view.number, ":");
  for (size_t i = 0; i < view.shards.size() && i < shards; ++i) {
    absl::StrAppend(&text, i == 0 ? " " : "; ", TextOfShard(view, i));
  }
  if (view.shards.size() > shards) {
    absl::StrAppend(&text, "; ", view.shards.size() - shards, " more shards");
  }
  return text;
}

}  // namespace penstock::ps::views
