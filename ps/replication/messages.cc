#include "ps/replication/messages.h"

#include "absl/strings/str_cat.h"

namespace penstock::ps::replication {
namespace {

absl::Status Differs(absl::string_view what, absl::string_view mine,
                     absl::string_view theirs, absl::string_view remedy) {
  return absl::FailedPreconditionError(
      absl::StrCat("this server has ", what, " ", mine, ", and the peer has ",
                   theirs, "; ", remedy));
}

std::string HexOf(uint64_t number) { return absl::StrCat(absl::Hex(number)); }

}  // namespace

absl::Status CheckSameGroup(const Group& mine, const Group& theirs) {
  if (mine.run != theirs.run) {
    return Differs("run", HexOf(mine.run), HexOf(theirs.run),
                   "it belongs to another training, or missed a restore");
  }
  if (mine.model != theirs.model) {
    return Differs("model", HexOf(mine.model), HexOf(theirs.model),
                   "define the same model at all servers");
  }
  if (mine.build != theirs.build) {
    return Differs("build", mine.build, theirs.build,
                   "replicas need the same program");
  }
  if (mine.shard != theirs.shard) {
    return Differs("shard", absl::StrCat(mine.shard),
                   absl::StrCat(theirs.shard), "the message went astray");
  }
  return absl::OkStatus();
}

}  // namespace penstock::ps::replication
