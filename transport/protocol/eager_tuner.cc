#include "transport/protocol/eager_tuner.h"

#include <algorithm>
#include <limits>

#include "transport/protocol/chunk_tuner.h"

namespace penstock {
namespace protocol {
namespace {

// Returns the quotient, or a number above all sizes if `divisor` is not
// positive.
double Quotient(double dividend, double divisor) {
  return divisor > 0 ? dividend / divisor : std::numeric_limits<double>::max();
}

}  // namespace

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
  // Yields the upper bound if exposing a byte costs more than copying it twice.
  const double wanted = Quotient(fixed, per_byte);
  size_.Propose(peer_asks_ ? std::min(wanted, FairSize(waiting)) : wanted);
}

double EagerTuner::FairSize(double waiting) const {
  constexpr double kPiecesNs = ChunkTuner::kPipes * ChunkTuner::kMaxDelayNs;
  return std::max<double>(start_,
                          Quotient(waiting + kPiecesNs, releasing_.slope()));
}

}  // namespace protocol
}  // namespace penstock
