// The messages between rank 0 of a team and the other ranks.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_TEAM_LINE_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_TEAM_LINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace penstock {
namespace tensorflow {

struct TeamLine {
  enum class Kind : uint8_t {
    kCalled = 1,  // to rank 0: the sender has called a reduction
    kGaveUp = 2,  // to rank 0: the sender has withdrawn its call
    kReduce = 3,  // to all ranks: they run the reduction now
  };

  // Limits the bytes of a key.
  static constexpr size_t kMaxKeyBytes = 253;

  Kind kind = Kind::kCalled;
  std::string key;  // equal on all ranks
};

// A line's bytes: u8 kind, u8 bytes of the key, the key, and zeros.
using TeamLineBytes = std::array<uint8_t, 2 + TeamLine::kMaxKeyBytes>;

// The key must have at most kMaxKeyBytes bytes.
TeamLineBytes Encode(const TeamLine& line);
// Returns INVALID_ARGUMENT for bytes that Encode() does not return.
absl::StatusOr<TeamLine> DecodeTeamLine(const TeamLineBytes& bytes);

}  // namespace tensorflow
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_TEAM_LINE_H_
