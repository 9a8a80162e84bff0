// Segments of peers' arenas that this process has mapped.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_LENT_SEGMENT_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_LENT_SEGMENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/fabric/shm/mapping.h"
#include "transport/progress/foreign_fd.h"

namespace penstock {
namespace fabric {
namespace shm {

// A segment that a peer lends from, mapped read-only. The process maps each
// memory only once, even if several peers pass the same memory over different
// connections. Thread-safe.
//
// If a segment has no users, all peers that lent it are dead. Ranges that are
// still being read are then copied to private memory, at the same addresses,
// and the segment is unmapped. Without the copy, a few bytes could keep
// hundreds of megabytes that no process uses. Copies only if the ranges are
// much smaller than the segment. Frees each range with its last Loan.
//
// Bytes may be read only after a search for holes, which takes about 60 us for
// each MiB. Check() searches only the requested parts of 2 MiB. Another thread
// searches the rest, part after part. A reader therefore waits only for the
// parts that it reads.
class LentSegment : public std::enable_shared_from_this<LentSegment> {
 public:
  class Loan;

  // Returns the segment of `fd`, mapped now or before, and counts the caller as
  // a user until RemoveUser(). Returns FAILED_PRECONDITION or INVALID_ARGUMENT
  // unless `fd` is a sealed memfd of exactly `size` bytes with enough pages.
  static absl::StatusOr<std::shared_ptr<LentSegment>> Get(
      progress::ForeignFd fd, uint64_t size);

  LentSegment(const LentSegment&) = delete;
  LentSegment& operator=(const LentSegment&) = delete;

  const uint8_t* data() const { return mapping_.data(); }
  uint64_t size() const { return mapping_.size(); }

  // Searches for holes. Returns OK if no access to [offset, offset + length)
  // can fail from now on. Returns FAILED_PRECONDITION if the peer has not
  // allocated the range. The range must be within the segment.
  absl::Status Check(uint64_t offset, uint64_t length);

  // Declares that the caller of Get() begins no more reads. Ranges with a Loan
  // stay readable.
  void RemoveUser();

 private:
  // The kind of memory that holds the bytes.
  enum class Place {
    kSegment,  // in the peer's memory
    kCopying,  // in the peer's memory, while a private copy is made
    kPrivate,  // in private memory
  };

  LentSegment(progress::ForeignFd fd, Mapping mapping);

  // Makes a segment, and starts its search on another thread.
  static std::shared_ptr<LentSegment> Make(progress::ForeignFd fd,
                                           Mapping mapping);
  // Searches the next unsearched part for holes. Returns false when all parts
  // are searched, or when a hole was found.
  bool CheckNext();
  static void CheckRestAside(const std::weak_ptr<LentSegment>& weak);
  absl::Status CheckPartLocked(size_t part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Counts one more user. Returns false if the last user has left.
  bool AddUser();
  void Begin(Loan* loan);
  void End(Loan* loan);
  // Begins to copy the ranges with loans, if this saves much memory.
  void MayCopyLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(loans_mu_);
  // Copies the ranges with loans, and unmaps the segment.
  void Copy();
  // Returns the pages with loans, as sorted ranges with gaps between them.
  std::vector<std::pair<uint64_t, uint64_t>> LoanedLocked() const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loans_mu_);
  // Frees private pages in [begin, end) without loans.
  void FreeUnloanedLocked(uint64_t begin, uint64_t end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(loans_mu_);

  const Mapping mapping_;
  const uint32_t fork_count_;
  std::atomic<bool> is_good_{false};  // all parts have been searched

  base::Mutex mu_;
  progress::ForeignFd fd_ ABSL_GUARDED_BY(mu_);  // until all parts are searched
  std::vector<bool> checked_ ABSL_GUARDED_BY(mu_);
  size_t unchecked_ ABSL_GUARDED_BY(mu_) = 0;  // unsearched parts of checked_
  absl::Status bad_ ABSL_GUARDED_BY(mu_);      // the hole that was found

  base::Mutex loans_mu_;
  size_t users_ ABSL_GUARDED_BY(loans_mu_) = 1;
  Place place_ ABSL_GUARDED_BY(loans_mu_) = Place::kSegment;
  Loan* loans_ ABSL_GUARDED_BY(loans_mu_) = nullptr;  // a list
  uint64_t loaned_bytes_ ABSL_GUARDED_BY(loans_mu_) = 0;
};

// A range of a segment that is being read while this object exists. Not
// movable.
class LentSegment::Loan {
 public:
  Loan() = default;
  ~Loan() {
    if (segment_ != nullptr) segment_->End(this);
  }
  Loan(const Loan&) = delete;
  Loan& operator=(const Loan&) = delete;

  // Begins the loan. Call it once. The range must be within the segment.
  void Begin(std::shared_ptr<LentSegment> segment, uint64_t offset,
             uint64_t length) {
    segment_ = std::move(segment);
    offset_ = offset;
    length_ = length;
    segment_->Begin(this);
  }

 private:
  friend class LentSegment;

  std::shared_ptr<LentSegment> segment_;
  uint64_t offset_ = 0;
  uint64_t length_ = 0;
  Loan* next_ = nullptr;
  Loan* previous_ = nullptr;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_LENT_SEGMENT_H_
