// Lets the ranks of one host find each other.

#ifndef PENSTOCK_COLLECTIVES_HOST_MEETING_H_
#define PENSTOCK_COLLECTIVES_HOST_MEETING_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "collectives/host/member.h"
#include "transport/base/unique_fd.h"

namespace penstock::collectives {

// Limits the ranks of a host: each has two descriptors and a mapping for each
// other rank.
inline constexpr int kMaxHostRanks = 64;
// The minimum size of a slot, in bytes. Each rank has two slots.
inline constexpr uint64_t kMinSlotBytes = 4096;
inline constexpr uint64_t kMaxSlotBytes = uint64_t{64} << 20;
// Limits the bytes of a rank's pool.
inline constexpr uint64_t kMaxPoolBytes = uint64_t{64} << 30;

// All ranks of a host. peers[r] is rank r, and null for this rank.
struct Members {
  int rank = 0;
  std::unique_ptr<OwnMember> own;
  std::vector<std::unique_ptr<PeerMember>> peers;
};

// A meeting point of a group. Rank 0 opens it and gives the invitation to the
// other ranks. Only processes of the same user and network namespace can join.
class Meeting {
 public:
  static absl::StatusOr<Meeting> Open();

  // Returns a line of printable characters: a socket's name and a one-time
  // token.
  const std::string& invitation() const { return invitation_; }

  // Waits for ranks 1 to `ranks` - 1 and introduces all ranks to each other. A
  // refused rank gets the reason, and Lead() continues to wait for the others.
  // Returns DEADLINE_EXCEEDED, with the missing ranks, after `timeout`.
  absl::StatusOr<Members> Lead(int ranks, SegmentSizes sizes,
                               absl::Duration timeout);

 private:
  Meeting(base::UniqueFd listener, std::string token, std::string invitation)
      : listener_(std::move(listener)),
        token_(std::move(token)),
        invitation_(std::move(invitation)) {}

  base::UniqueFd listener_;
  std::string token_;
  std::string invitation_;
};

// Meets the other ranks as rank `rank`, which is at least 1. If rank 0 refuses
// this rank, returns rank 0's reason.
absl::StatusOr<Members> Join(absl::string_view invitation, int rank, int ranks,
                             SegmentSizes sizes, absl::Duration timeout);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HOST_MEETING_H_
