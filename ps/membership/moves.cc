#include "ps/membership/moves.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ps/membership/keys.h"
#include "transport/base/printable.h"

namespace penstock::ps::membership {
namespace {

// Limits how long a killed command keeps the right to move shards.
constexpr absl::Duration kTimeToLive = absl::Seconds(10);

absl::Status Foreign(const std::string& key) {
  return absl::FailedPreconditionError(absl::StrCat(
      base::Printable(key, kMaxNameBytes),
      " in etcd is not of this release of Penstock: delete that key"));
}

std::string ThisProcess() {
  char host[HOST_NAME_MAX + 1] = {};
  gethostname(host, sizeof(host) - 1);
  return absl::StrCat("process ", getpid(), " on ", host);
}

std::string TextOf(const std::string& value) {
  v1::Move move;
  move.ParseFromString(value);
  const char* const what = move.kind() == v1::Move::DRAIN       ? "drain"
                           : move.kind() == v1::Move::REBALANCE ? "rebalance"
                           : move.kind() == v1::Move::ADD       ? "add"
                                                                : "command";
  return absl::StrCat("a ", what, " by ",
                      base::Printable(move.by(), kMaxNameBytes));
}

absl::Status WriteMark(Registry* registry, const v1::Server& server,
                       const std::string& value, int64_t lease,
                       const Registry::Guard& claim) {
  const std::string mark = LeavingKey(server.name());
  const auto present = registry->Read(mark);
  if (!present.ok()) return present.status();
  const auto is_done = [&](const absl::optional<Registry::Value>& now) {
    return now && now->bytes == value && now->lease == lease;
  };
  if (is_done(*present) || (value.empty() && !*present)) {
    return absl::OkStatus();
  }
  const int64_t revision = *present ? (*present)->revision : 0;
  const auto written = registry->Write(mark, value, revision, lease, claim);
  if (!written.ok()) return written.status();
  if (written->is_done || is_done(written->found)) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat(mark, " in etcd was written by another process"));
}

}  // namespace

absl::StatusOr<Wanted> ReadWanted(const etcd::Values& values,
                                  const std::string& prefix) {
  Wanted wanted;
  const auto move = values.find(prefix + kMove);
  if (move != values.end()) {
    v1::Move is_moving;
    if (!is_moving.ParseFromString(move->second.value())) {
      return Foreign(move->first);
    }
    wanted.to_own_servers = is_moving.kind() == v1::Move::REBALANCE;
  }
  for (const auto& [key, value] : values) {
    if (!absl::StartsWith(key, prefix + kLeaving)) continue;
    if (value.value().empty()) continue;  // the mark was removed
    v1::Server server;
    if (!server.ParseFromString(value.value())) return Foreign(key);
    wanted.leaving.push_back(std::move(server));
  }
  return wanted;
}

int64_t RevisionOfMarks(const etcd::Values& values, const std::string& prefix) {
  int64_t newest = 0;
  for (const auto& [key, value] : values) {
    if (!absl::StartsWith(key, prefix + kLeaving)) continue;
    newest = std::max(newest, value.mod_revision());
  }
  return newest;
}

absl::StatusOr<std::unique_ptr<Registration>> ClaimMove(Registry* registry,
                                                        v1::Move::Kind kind) {
  std::random_device device;
  v1::Move move;
  move.set_kind(kind);
  move.set_by(ThisProcess());
  move.set_id(static_cast<uint64_t>(device()) << 32 | device());
  Registration::Options options;
  options.registry = registry;
  options.key = kMove;
  options.value = move.SerializeAsString();
  options.name = "the right to move shards";
  options.describe = TextOf;
  options.time_to_live = kTimeToLive;
  options.patience = absl::ZeroDuration();
  auto claimed = Registration::Register(std::move(options));
  if (!absl::IsAlreadyExists(claimed.status())) return claimed;
  const auto found = registry->Read(kMove);
  if (!found.ok()) return found.status();
  return absl::FailedPreconditionError(absl::StrCat(
      found->has_value() ? TextOf((*found)->bytes) : "another command",
      " moves shards: wait for its end. If it was killed, its right ends "
      "after ",
      absl::FormatDuration(kTimeToLive)));
}

absl::Status MarkLeaving(Registry* registry, const v1::Server& server,
                         MarkLasts lasts, const Registry::Guard& claim) {
  const int64_t lease = lasts == MarkLasts::kWithCommand ? claim.lease : 0;
  return WriteMark(registry, server, server.SerializeAsString(), lease, claim);
}

absl::Status UnmarkLeaving(Registry* registry, const v1::Server& server,
                           const Registry::Guard& claim) {
  // Writes an empty mark, which has no meaning and ends with the command.
  return WriteMark(registry, server, "", claim.lease, claim);
}

}  // namespace penstock::ps::membership
