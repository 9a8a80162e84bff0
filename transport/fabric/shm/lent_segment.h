// Memory of peers' arenas, as this process has it mapped.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_LENT_SEGMENT_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_LENT_SEGMENT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/fabric/shm/mapping.h"
#include "transport/progress/foreign_fd.h"

namespace penstock {
namespace fabric {
namespace shm {

// A segment that a peer lends from. Whoever passes the same memory, under
// whatever number and over whatever connection, it is mapped once. Thread-safe.
//
// What is read must have been looked through for holes, which costs about 60 us
// for each MiB. A part of 2 MiB is, when it is first asked for; the rest aside,
// one part after the other, so that nobody waits for more than what he reads.
class LentSegment {
 public:
  // The memory behind `fd`. Refuses what is not a memfd of exactly `size`
  // bytes, sealed and of as many pages (FAILED_PRECONDITION,
  // INVALID_ARGUMENT).
  static absl::StatusOr<std::shared_ptr<LentSegment>> Get(
      progress::ForeignFd fd, uint64_t size);

  LentSegment(const LentSegment&) = delete;
  LentSegment& operator=(const LentSegment&) = delete;

  const uint8_t* data() const { return mapping_.data(); }
  uint64_t size() const { return mapping_.size(); }

  // Whether no access to [offset, offset + length), which is within, can fail
  // from now on. FAILED_PRECONDITION: the peer has not allocated it.
  absl::Status Check(uint64_t offset, uint64_t length);

 private:
  LentSegment(progress::ForeignFd fd, Mapping mapping);

  // Makes one, aside the rest of which is looked through.
  static std::shared_ptr<LentSegment> Make(progress::ForeignFd fd,
                                           Mapping mapping);
  // Looks through the next part that nobody has asked for. False: all is done.
  bool CheckNext();
  static void CheckRestAside(std::weak_ptr<LentSegment> weak);
  absl::Status CheckPartLocked(size_t part);

  const Mapping mapping_;
  std::atomic<bool> is_good_{false};  // all of it

  std::mutex mu_;           // guards the rest
  progress::ForeignFd fd_;  // until all is known
  std::vector<bool> checked_;
  size_t unchecked_ = 0;  // parts
  absl::Status bad_;      // what was found
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_LENT_SEGMENT_H_
