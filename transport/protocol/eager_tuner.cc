#include "transport/protocol/eager_tuner.h"

#include <limits>

namespace penstock {
namespace protocol {

void EagerTuner::OnCopied(size_t bytes, uint64_t ns) {
  copying_.Add(bytes, ns);
  Settle();
}

void EagerTuner::OnAnnounced(size_t bytes, uint64_t ns) {
  announcing_.Add(bytes, ns);
  Settle();
}

void EagerTuner::OnReleased(size_t bytes, uint64_t ns) {
  releasing_.Add(bytes, ns);
}

void EagerTuner::Settle() {
  if (!copying_.has_ratio() || !announcing_.has_line()) return;
  if (peer_asks_ && !releasing_.has_line()) return;
  const double waiting = peer_asks_ ? releasing_.fixed() / 2 : 0;
  const double fixed = waiting + 2 * announcing_.fixed();
  const double per_byte = 2 * copying_.ratio() - announcing_.slope();
  // If exposing a byte costs more than copying it twice, no size is too large.
  size_.Propose(per_byte > 0 ? fixed / per_byte
                             : std::numeric_limits<double>::max());
}

}  // namespace protocol
}  // namespace penstock
