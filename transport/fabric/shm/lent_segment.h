// Segments of peers' arenas, as this process has them mapped.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_LENT_SEGMENT_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_LENT_SEGMENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/fabric/shm/mapping.h"
#include "transport/progress/foreign_fd.h"

namespace penstock {
namespace fabric {
namespace shm {

// A segment that a peer lends from, mapped read-only. The process maps the same
// memory once, whoever passes it, under whatever number and over whatever
// connection. Thread-safe.
//
// Bytes may be read once they have been searched for holes, which takes about
// 60 us for each MiB. Check() searches the parts of 2 MiB that it is asked for.
// The rest is searched aside, part after part, so that nobody waits for more
// than what it reads.
class LentSegment {
 public:
  // Returns the segment behind `fd`, mapped now or before. Returns
  // FAILED_PRECONDITION or INVALID_ARGUMENT unless that is a sealed memfd of
  // exactly `size` bytes with enough pages.
  static absl::StatusOr<std::shared_ptr<LentSegment>> Get(
      progress::ForeignFd fd, uint64_t size);

  LentSegment(const LentSegment&) = delete;
  LentSegment& operator=(const LentSegment&) = delete;

  const uint8_t* data() const { return mapping_.data(); }
  uint64_t size() const { return mapping_.size(); }

  // Returns OK if no access to [offset, offset + length) can fail from now on,
  // and FAILED_PRECONDITION if the peer has not allocated it. The range must be
  // within the segment.
  absl::Status Check(uint64_t offset, uint64_t length);

 private:
  LentSegment(progress::ForeignFd fd, Mapping mapping);

  // Makes a segment, and has it searched aside.
  static std::shared_ptr<LentSegment> Make(progress::ForeignFd fd,
                                           Mapping mapping);
  // Searches the next part that nobody has asked for. Returns false when all is
  // done, or a hole was found.
  bool CheckNext();
  static void CheckRestAside(const std::weak_ptr<LentSegment>& weak);
  absl::Status CheckPartLocked(size_t part) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Mapping mapping_;
  std::atomic<bool> is_good_{false};  // all of it has been searched

  base::Mutex mu_;
  progress::ForeignFd fd_ ABSL_GUARDED_BY(mu_);  // until all is searched
  std::vector<bool> checked_ ABSL_GUARDED_BY(mu_);
  size_t unchecked_ ABSL_GUARDED_BY(mu_) = 0;  // parts of checked_
  absl::Status bad_ ABSL_GUARDED_BY(mu_);      // the hole that was found
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_LENT_SEGMENT_H_
