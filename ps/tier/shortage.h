// State of a disk: full, failing or well. Writers wait here for room.

#ifndef PENSTOCK_PS_TIER_SHORTAGE_H_
#define PENSTOCK_PS_TIER_SHORTAGE_H_

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "transport/base/mutex.h"

namespace penstock::ps {

// The state of a disk that is full, or fails, as the threads that write tables
// find out. There are two kinds of tables:
// - A flush holds rows that are nowhere else but in memory. It waits for room.
// - A compaction only rewrites rows. It gives up, so that its room is free for
//   others, and begins again later.
//
// Thread-safe.
class Shortage {
 public:
  enum class Kind { kFlush, kCompaction };

  struct Pace {
    // Between two tries of a write that waits.
    absl::Duration retry = absl::Milliseconds(100);
    // Before a compaction begins again; doubles with each failure.
    absl::Duration first_backoff = absl::Seconds(1);
    absl::Duration longest_backoff = absl::Seconds(32);
    // A failure without another one after it counts as over after this time.
    absl::Duration memory = absl::Minutes(1);
  };

  // `free_bytes` returns how much room the disk has. Any thread may call it.
  explicit Shortage(std::function<uint64_t()> free_bytes)
      : Shortage(std::move(free_bytes), Pace()) {}
  Shortage(std::function<uint64_t()> free_bytes, Pace pace)
      : free_bytes_(std::move(free_bytes)), pace_(pace) {}

  // Returns OK, or RESOURCE_EXHAUSTED with the cause while a write waits, or
  // after one has failed. Takes no lock while all is well.
  absl::Status status() const;

  // One write that waits for room, for as long as this object lives.
  class Waiting {
   public:
    explicit Waiting(Shortage* shortage) : shortage_(shortage) {}
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting();

    // Blocks after a failure, with that errno, until the write is due again.
    // Returns false after Close().
    bool UntilRetry(int error);

   private:
    Shortage* const shortage_;
    bool counted_ = false;
  };

  // A table could not be written, of which `bytes` were there.
  void OnFailed(Kind kind, int error, uint64_t bytes);
  // A table is on the disk as a whole, or none is needed any more.
  void OnDone(Kind kind);
  // Blocks after a failed compaction until the next one may begin: the disk has
  // as much more room as was written in vain, or the backoff is over.
  void AwaitCompaction();

  // From now on nobody waits. May be called repeatedly.
  void Close();
  bool closed() const { return closed_; }

 private:
  struct Failure {
    int error = 0;  // none
    uint64_t bytes = 0;
    absl::Time at;
    absl::Duration backoff;
  };

  Failure& FailureOf(Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return failures_[static_cast<size_t>(kind)];
  }
  // Returns the errno of what is wrong; 0 for nothing.
  int CauseLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void UpdateLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Blocks for that time, or until Close(). Returns false if that came.
  bool Pause(absl::Duration time);

  // May block for long, as a call of a disk may: called without the lock.
  const std::function<uint64_t()> free_bytes_;
  const Pace pace_;
  mutable base::Mutex mu_;
  std::condition_variable_any closing_;
  std::atomic<bool> closed_{false};
  // Whether there may be a cause. Spares status() the lock.
  std::atomic<bool> maybe_{false};
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
  int waiting_error_ ABSL_GUARDED_BY(mu_) = 0;
  std::array<Failure, 2> failures_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_TIER_SHORTAGE_H_
