// Tracks which entries of a log were fed to a server, and which of them the
// server has applied.

#ifndef PENSTOCK_PS_SHARDS_FED_ENTRIES_H_
#define PENSTOCK_PS_SHARDS_FED_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "ps/consistency/coordinator.h"
#include "ps/replication/log.h"
#include "ps/replication/push_history.h"
#include "ps/server/model_snapshot.h"

namespace penstock::ps {

// The entries that a log has fed to a Server. An entry is fed once the Server
// has accepted or refused it. An entry is applied once the Server's values
// contain it; the pushes of a synchronous step are applied together, once the
// step is complete. One entry is fed at a time. Also stores the members as of
// the last applied entry, for a snapshot.
//
// Pure. Not thread-safe.
class FedEntries {
 public:
  // Returns the present members of the Server; nullopt if the Server has
  // failed.
  using MembersNow = std::function<absl::optional<MembersImage>()>;

  // Returns the number of the last entry that was fed.
  uint64_t last() const { return last_; }
  bool is_feeding() const { return is_feeding_; }
  bool all_applied() const { return unapplied_.empty(); }

  // Restarts after entry `seq`, because the Server has restored a snapshot of
  // that entry.
  void Reset(uint64_t seq);
  // Begin() records that the next entry is being fed. End() records the result,
  // and returns true if the entry is already applied. `has_counted` is true for
  // a push that the Server has accepted. Stop() records that the entry must be
  // fed again.
  void Begin(const replication::Entry& entry, const MembersNow& members);
  bool End(const replication::Entry& entry, bool has_counted,
           const MembersNow& members);
  void Stop() { is_feeding_ = false; }

  // Starts a hold. During a hold, Advance() and End() count no entry as
  // applied, so the applied entries do not pass the cut of a snapshot.
  void Hold() { is_held_ = true; }
  void Release() { is_held_ = false; }
  bool is_held() const { return is_held_; }
  // Marks as applied the longest prefix of entries whose pushes are below the
  // clocks. Returns the number of entries that were marked.
  size_t Advance(const std::vector<RankClock>& clocks);
  // Returns the members after the last applied entry, or nullopt if they are
  // unknown. `now` are the present members.
  absl::optional<MembersImage> MembersAtApplied(const MembersImage& now) const;

 private:
  struct Fed {
    uint64_t seq = 0;
    absl::optional<replication::WorkerPush> push;  // if it was counted
  };

  void AddImage(const MembersNow& members);

  uint64_t last_ = 0;
  uint64_t applied_ = 0;
  bool is_feeding_ = false;
  bool is_held_ = false;
  std::deque<Fed> unapplied_;
  // The members after an entry, in ascending order of entries. Has each entry
  // from `applied_` on that may have changed the members.
  std::deque<std::pair<uint64_t, MembersImage>> images_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_FED_ENTRIES_H_
