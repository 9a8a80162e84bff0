// Gives paths beside the lifeline up when the process runs out of descriptors.

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

// Ends the newest paths when a connection comes and few descriptors are left. A
// session lives on without a path, but a new connection cannot live without a
// descriptor. Clients retry their paths later, with a backoff. Thread-safe.
class PathRelief {
 public:
  // The transport, whose session can go on without its path.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Ends the path in use, if there is one, and drops a reference. Called on
    // the event loop's thread, without locks.
    virtual void GiveUpPath(const absl::Status& why) = 0;
    virtual void Ref() = 0;
  };
  using Id = uint64_t;

  // Returns the process's own, which is never destroyed. The child of a fork
  // gets another.
  static PathRelief* Get();

  // `closing_time`: how long the descriptors of a path take to be closed, on
  // another thread, behind those of other peers.
  explicit PathRelief(absl::Duration closing_time = absl::Milliseconds(100))
      : closing_time_(closing_time) {}
  PathRelief(const PathRelief&) = delete;
  PathRelief& operator=(const PathRelief&) = delete;

  // Adds an owner that has a path, until Remove(). The owner has references of
  // others meanwhile.
  Id Add(Owner* owner);
  void Remove(Id id);

  // Call this for each connection that begins. Has paths given up soon, if few
  // descriptors are left.
  void OnConnection();
  // Gives up the newest paths at once, as many as `now` has in excess. Counts
  // the descriptors of paths that were given up just before as free: they are
  // about to be closed.
  void Relieve(const base::Descriptors& now);

 private:
  std::vector<Owner*> Choose(int64_t excess);

  const absl::Duration closing_time_;
  std::atomic<bool> scheduled_{false};
  base::Mutex mu_;
  Id next_id_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<Id, Owner*> owners_ ABSL_GUARDED_BY(mu_);
  int64_t closing_ ABSL_GUARDED_BY(mu_) = 0;  // given up just before
};

}  // namespace paths
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PATHS_PATH_RELIEF_H_
