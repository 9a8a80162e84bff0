// Tracks whether a disk is full or failing, and lets writers wait for room.

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

// The state of a full or failing disk, as observed by the threads that write
// tables:
// - A flush writes rows that exist only in memory. Flushes wait for room.
// - A compaction only rewrites rows. If there is no room, a compaction stops,
//   which frees its room for others, and starts again later.
//
// The functions are thread-safe.
class Shortage {
 public:
  enum class Kind { kFlush, kCompaction };

  struct Pace {
    // The time after which a waiting write is retried.
    absl::Duration retry = absl::Milliseconds(100);
    // The time until a failed compaction starts again. Doubles with each
    // failure.
    absl::Duration first_backoff = absl::Seconds(1);
    absl::Duration longest_backoff = absl::Seconds(32);
    // How long a failure counts as a shortage if no other failure follows.
    absl::Duration memory = absl::Minutes(1);
  };

  // Starts without a shortage. `free_bytes` returns the free space of the disk,
  // and is called on any thread.
  explicit Shortage(std::function<uint64_t()> free_bytes)
      : Shortage(std::move(free_bytes), Pace()) {}
  Shortage(std::function<uint64_t()> free_bytes, Pace pace)
      : free_bytes_(std::move(free_bytes)), pace_(pace) {}

  // Returns OK if there is no shortage. Otherwise, while a write waits or after
  // one has failed, returns RESOURCE_EXHAUSTED with the cause. Takes no lock if
  // there is no shortage.
  absl::Status status() const;

  // The state of a write that waits for room. The wait lasts as long as this
  // object.
  class Waiting {
   public:
    explicit Waiting(Shortage* shortage) : shortage_(shortage) {}
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
    ~Waiting();

    // Blocks after a failure with errno `error` until the write may be retried.
    // Returns false after Close().
    bool UntilRetry(int error);

   private:
    Shortage* const shortage_;
    bool counted_ = false;
  };

  // Records that writing a table has failed, after `bytes` of its bytes were
  // written.
  void OnFailed(Kind kind, int error, uint64_t bytes);
  // Records that a table was written completely, or that no table needs to be
  // written any more.
  void OnDone(Kind kind);
  // Blocks after a failed compaction until the next one may start: when the
  // backoff is over, or when the free space has grown by the bytes that the
  // failed compaction wrote.
  void AwaitCompaction();

  // Ends all waits, now and later. May be called repeatedly.
  void Close();
  bool closed() const { return closed_; }

 private:
  struct Failure {
    int error = 0;  // 0: none
    uint64_t bytes = 0;
    absl::Time at;
    absl::Duration backoff;
  };

  Failure& FailureOf(Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return failures_[static_cast<size_t>(kind)];
  }
  // Returns the errno of the current cause, or 0.
  int CauseLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void UpdateLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Blocks for `time`. Returns false, possibly earlier, if Close() was called.
  bool Pause(absl::Duration time);

  // Returns the free space of the disk. May block for long, like any disk call,
  // so it is called without the lock.
  const std::function<uint64_t()> free_bytes_;
  const Pace pace_;
  mutable base::Mutex mu_;
  std::condition_variable_any closing_;
  std::atomic<bool> closed_{false};
  // True if there may be a shortage. If false, status() needs no lock.
  std::atomic<bool> maybe_{false};
  int waiting_ ABSL_GUARDED_BY(mu_) = 0;
  int waiting_error_ ABSL_GUARDED_BY(mu_) = 0;
  std::array<Failure, 2> failures_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_TIER_SHORTAGE_H_
