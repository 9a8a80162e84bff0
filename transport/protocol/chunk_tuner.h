// Into what pieces a side cuts its reads over one path.
//
// The reads with which a busy time begins, one behind another on a path that
// was idle, end at
//
//   time from the start = latency + bytes up to the end of the read / bandwidth
//
// (LogGP's L and G; Alexandrov and others, SPAA 1995), which a line through
// these points tells apart. From them, with n reads at once:
//
//   - n pieces are to hold kPipes times what the path holds, latency times
//     bandwidth, so that it stays busy while the next ones are asked for, and
//     none is to be smaller than at the start, which would gain nothing;
//   - but one piece may take no longer than kMaxDelayNs, for a small message
//     may wait behind it.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_CHUNK_TUNER_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_CHUNK_TUNER_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "transport/protocol/line_fit.h"
#include "transport/protocol/stepped_size.h"

namespace penstock {
namespace protocol {

// Has no clock: times come as arguments, in nanoseconds of any beginning. It
// wants few of them: one when idle() as a message begins to be read, and one
// for each read that ends while wants_time().
class ChunkTuner {
 public:
  // One piece's time on the path. The size may end up above what is wanted by
  // SteppedSize::kMargin: a millisecond.
  static constexpr double kMaxDelayNs = 600 * 1000;
  // Two keep it busy even if the size ends up below what is wanted by
  // SteppedSize::kMargin, two more while the reader is not run. More would only
  // add to the queue that other messages wait in. Of a path with one read at a
  // time, a fifth is spent waiting.
  static constexpr double kPipes = 4;

  // `first_is_pushed`: the first read of a message is under way unasked. It
  // hides as much latency as it takes time; of more than that the rest is seen.
  ChunkTuner(const SizeBounds& bounds, bool first_is_pushed, int max_reads)
      : size_(bounds),
        start_(bounds.start),
        first_is_pushed_(first_is_pushed),
        max_reads_(max_reads) {}

  size_t chunk_bytes() const { return size_.value(); }
  bool adapts() const { return !size_.is_fixed(); }

  // No read is under way.
  bool idle() const { return under_way_ == 0; }
  // A message begins to be read. The first one if idle(), else the second.
  void Begin(uint64_t now_ns);
  void BeginBehindOthers() { opening_ = false; }
  // Reads start at once, and end in the order of their starts.
  void OnRead(size_t bytes);
  bool wants_time() const { return measures_; }
  // `now_ns` is looked at only if wants_time().
  void OnReadDone(bool ok, uint64_t now_ns);

 private:
  struct Point {
    double bytes = 0;
    double ns = 0;
  };

  void OnPoint(const Point& point);
  void Settle();

  SteppedSize size_;
  size_t start_;
  bool first_is_pushed_;
  int max_reads_;
  LineFit fit_;
  int under_way_ = 0;
  bool opening_ = false;   // no read has ended yet, nor another message begun
  bool measures_ = false;  // one of the opening reads has not ended yet
  uint64_t begun_ns_ = 0;
  // Bytes up to the end of each opening read; more than fit are not measured.
  std::array<size_t, 16> ends_;
  size_t opened_ = 0;
  size_t ended_ = 0;
  Point last_;  // not given to fit_ yet
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_CHUNK_TUNER_H_
