#include "collectives/net/placement.h"

#include <algorithm>
#include <cstdint>

#include "collectives/elements.h"
#include "collectives/schedule/schedule.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {
namespace {

using Kind = Action::Kind;

// Shorter transfers are copied: a copy costs little, and nobody waits for
// answers.
constexpr int64_t kMinBytes = 64 * 1024;
// The end of each send in a rank's last step is copied, because waiting until
// the peer has received it would take another round trip. The beginning need
// not be copied: peers have received it by the time at which this rank has
// received its last part.
constexpr int64_t kCopiedEndBytes = 512 * 1024;
// A rank that receives nothing in its last step, such as the root of a
// broadcast, waits only for what it lends. Waiting costs less than copying from
// this size on.
constexpr int64_t kMinAwaitedBytes = 2 * 1024 * 1024;

bool Overlap(const Range& a, const Range& b) {
  return a.begin < b.begin + b.count && b.begin < a.begin + a.count;
}

bool IsSendOfData(const Action& action) {
  return action.kind == Kind::kSend && action.buffer == Action::Buffer::kData;
}

}  // namespace

int64_t LentElements(const Step& step, const Action& send) {
  const int64_t bytes = BytesOf(step.dtype, send.range.count);
  if (bytes < kMinBytes || send.peer == step.rank) return 0;
  bool receives = false;
  for (const Action& other : step.actions) {
    if (other.kind == Kind::kSend) continue;
    receives = true;
    if (IsSendOfData(send) && Overlap(send.range, other.range)) return 0;
  }
  if (!step.is_last) return send.range.count;
  if (bytes <= kCopiedEndBytes) return 0;
  if (!receives && bytes < kMinAwaitedBytes) return 0;
  const auto size = static_cast<int64_t>(tensor::ElementSize(step.dtype));
  return send.range.count - kCopiedEndBytes / size;
}

bool IsReceivedInPlace(const Step& step, const Action& receive) {
  const int64_t bytes = BytesOf(step.dtype, receive.range.count);
  if (receive.kind != Kind::kReceive || bytes < kMinBytes) return false;
  return receive.peer != step.rank &&
         std::none_of(step.actions.begin(), step.actions.end(),
                      [&receive](const Action& other) {
                        const bool uses =
                            other.kind != Kind::kSend || IsSendOfData(other);
                        return uses && &other != &receive &&
                               Overlap(other.range, receive.range);
                      });
}

}  // namespace penstock::collectives
