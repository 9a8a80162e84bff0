#include "collectives/host/copy_choice.h"

#include <algorithm>
#include <cstddef>

#include "absl/numeric/bits.h"
#include "absl/time/time.h"
#include "collectives/elements.h"
#include "transport/base/streaming_copy.h"

namespace penstock::collectives {

void CopyPiece(const void* from, void* to, size_t bytes, size_t whole) {
  if (whole >= kLargeResult) return base::StreamingCopy(from, to, bytes);
  Copy(from, to, bytes);
}

CopyChoice::Times& CopyChoice::TimesOf(size_t bytes) {
  return times_[absl::bit_width(bytes)];
}

bool CopyChoice::Streams(size_t bytes) {
  Times& times = TimesOf(bytes);
  if (times.left == 0) {
    const bool best = times.streaming_is_faster();
    const bool is_known = times.seconds[0] > 0 && times.seconds[1] > 0;
    if (is_known) {
      if (--times.until_try > 0) return best;
      times.interval = std::min(2 * times.interval, kLastInterval);
      times.until_try = times.interval;
    }
    times.left = kTry;
    times.tries_streaming = is_known ? !best : best;
  }
  --times.left;
  return times.tries_streaming;
}

void CopyChoice::Record(size_t bytes, bool streamed, absl::Duration time) {
  Times& times = TimesOf(bytes);
  const bool before = times.streaming_is_faster();
  double& known = times.seconds[streamed ? 1 : 0];
  const double seconds = absl::ToDoubleSeconds(time);
  known = known == 0 ? seconds : std::min(known * kGrowth, seconds);
  if (times.streaming_is_faster() != before) {
    times.until_try = times.interval = kFirstInterval;
  }
}

}  // namespace penstock::collectives
