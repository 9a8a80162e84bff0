// Tracks which entries of a log a server has taken, and which of them it has
// applied.

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

// The entries that a log has fed to a Server. "Fed" means that the Server has
// taken or refused the entry. "Applied" means that the Server's values contain
// the entry; a synchronous step is applied once it is complete. One entry is
// fed at a time. Also remembers the members at the last applied entry, for a
// snapshot.
//
// Pure. Not thread-safe.
class FedEntries {
 public:
  // Returns the present members of the Server; nullopt if it has failed.
  using MembersNow = std::function<absl::optional<MembersImage>()>;

  // Returns the last entry that was fed.
  uint64_t last() const { return last_; }
  bool is_feeding() const { return is_feeding_; }
  bool all_applied() const { return unapplied_.empty(); }

  // Starts again after entry `seq`, whose snapshot the Server has.
  void Reset(uint64_t seq);
  // Begin() records that the next entry is being fed. End() records the result,
  // and returns true if the entry is applied, too. `has_counted` is true for a
  // push that was taken. Stop() records that the entry must be fed again.
  void Begin(const replication::Entry& entry, const MembersNow& members);
  bool End(const replication::Entry& entry, bool has_counted,
           const MembersNow& members);
  void Stop() { is_feeding_ = false; }

  // While held, Advance() and End() count no entry as applied. The applied
  // entries thus do not pass the cut of a snapshot.
  void Hold() { is_held_ = true; }
  void Release() { is_held_ = false; }
  bool is_held() const { return is_held_; }
  // Marks as applied the longest prefix of the entries whose pushes are below
  // the clocks. Returns the number of these entries.
  size_t Advance(const std::vector<RankClock>& clocks);
  // Returns the members after the last applied entry, or nullopt if they are
  // not known. `now` are the present members.
  absl::optional<MembersImage> MembersAtApplied(const MembersImage& now) const;

 private:
  struct Fed {
    uint64_t seq = 0;
    absl::optional<replication::WorkerPush> push;  // a push that has counted
  };

  void AddImage(const MembersNow& members);

  uint64_t last_ = 0;
  uint64_t applied_ = 0;
  bool is_feeding_ = false;
  bool is_held_ = false;
  std::deque<Fed> unapplied_;
  // The members after an entry, for each entry from `applied_` on that may have
  // changed them. In ascending order of entries.
  std::deque<std::pair<uint64_t, MembersImage>> images_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_FED_ENTRIES_H_
