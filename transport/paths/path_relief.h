// Closes side paths when the process runs out of descriptors.

#ifndef PENSTOCK_TRANSPORT_PATHS_PATH_RELIEF_H_
#define PENSTOCK_TRANSPORT_PATHS_PATH_RELIEF_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "transport/base/descriptors.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace paths {

// Frees file descriptors for new connections. Paths besides TCP cost further
// descriptors. If few descriptors are free when a connection begins, ends the
// newest of these paths. Their sessions continue over TCP, and clients later
// retry the paths, with a backoff. Thread-safe.
class PathRelief {
 public:
  // A connection whose session can continue without its path.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Ends the path in use, if any, and drops a reference. Called on the event
    // loop's thread, without locks.
    virtual void GiveUpPath(const absl::Status& why) = 0;
    virtual void Ref() = 0;
  };
  using Id = uint64_t;

  // Returns the process's instance, which is never destroyed. A forked child
  // gets a new instance.
  static PathRelief* Get();

  // `closing_time` estimates how long the closing of a path's descriptors
  // takes. Another thread closes them, perhaps after the descriptors of other
  // peers.
  explicit PathRelief(absl::Duration closing_time = absl::Milliseconds(100))
      : closing_time_(closing_time) {}
  PathRelief(const PathRelief&) = delete;
  PathRelief& operator=(const PathRelief&) = delete;

  // Adds an owner with a path. The caller ensures that a reference to the owner
  // exists until Remove().
  Id Add(Owner* owner);
  void Remove(Id id);

  // Schedules Relieve() if few descriptors are free. Call when a connection
  // begins.
  void OnConnection();
  // Closes the newest paths until enough descriptors are free, by the numbers
  // in `now`. Descriptors of paths that are just being closed count as free.
  void Relieve(const base::Descriptors& now);

 private:
  std::vector<Owner*> Choose(int64_t excess);

  const absl::Duration closing_time_;
  std::atomic<bool> scheduled_{false};
  base::Mutex mu_;
  Id next_id_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<Id, Owner*> owners_ ABSL_GUARDED_BY(mu_);
  int64_t closing_ ABSL_GUARDED_BY(mu_) = 0;  // recently closed paths
};

}  // namespace paths
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PATHS_PATH_RELIEF_H_
