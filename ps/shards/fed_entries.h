// The entries of a log that a server was fed and has not applied.

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

// "Fed" means that the Server has taken or refused the entry. "Applied" means
// that its values have it: a synchronous step is applied once it is complete.
// Feeds one entry at a time. Remembers the members at the last applied entry,
// for a snapshot.
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

  // Begins after entry `seq`, with the values of a snapshot.
  void Reset(uint64_t seq);
  // Begin to feed the next entry. End() records the result; `has_counted`: the
  // entry is a push that was taken. Returns true if it is applied, too. Stop()
  // records that the entry has to come again.
  void Begin(const replication::Entry& entry, const MembersNow& members);
  bool End(const replication::Entry& entry, bool has_counted,
           const MembersNow& members);
  void Stop() { is_feeding_ = false; }

  // While held, Advance() and End() find nothing applied, so that they do not
  // pass the cut of a snapshot.
  void Hold() { is_held_ = true; }
  void Release() { is_held_ = false; }
  bool is_held() const { return is_held_; }
  // Records as applied the longest prefix of the entries whose pushes are below
  // the clocks. Returns the number of entries.
  size_t Advance(const std::vector<RankClock>& clocks);
  // Returns the members after the last applied entry; nullopt if they are not
  // known. `now` has the present members.
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
  // changed them. Ascending.
  std::deque<std::pair<uint64_t, MembersImage>> images_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_FED_ENTRIES_H_
