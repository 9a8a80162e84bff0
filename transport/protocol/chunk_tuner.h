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
//
// A path that is never idle shows its bandwidth only: the bytes that are under
// way at some time, by the time until they have come. Unless that is little
// more than the path's least time for a read, for then it is latency that was
// seen.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_CHUNK_TUNER_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_CHUNK_TUNER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "transport/protocol/line_fit.h"
#include "transport/protocol/stepped_size.h"

namespace penstock {
namespace protocol {

// Has no clock: times come as arguments, in nanoseconds of any beginning, and
// are looked at only where it wants them: as a message begins to be read while
// idle(), as a read starts while wants_start(), as one ends while wants_end().
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
  // Reads end in the order in which they start, or nearly so.
  bool wants_start() const {
    return probe_left_ == 0 && !opening_ && under_way_ > 0 && adapts();
  }
  void OnRead(size_t bytes, uint64_t now_ns);
  bool wants_end() const { return measures_ || probe_left_ == 1; }
  void OnReadDone(bool ok, uint64_t now_ns);

 private:
  struct Point {
    double bytes = 0;
    double ns = 0;
  };

  void OnOpeningReadDone(bool ok, uint64_t now_ns);
  void OnProbeDone(bool ok, uint64_t now_ns);
  void OnPoint(const Point& point);
  void Settle();

  SteppedSize size_;
  size_t start_;
  bool first_is_pushed_;
  int max_reads_;
  int under_way_ = 0;
  double ns_per_byte_ = 0;  // as was measured last; 0: not yet
  LineFit fit_;             // of opening reads
  bool opening_ = false;    // no read has ended yet, nor another message begun
  bool measures_ = false;   // one of the opening reads has not ended yet
  uint64_t begun_ns_ = 0;
  // Bytes up to the end of each opening read; more than fit are not measured.
  std::array<size_t, 16> ends_;
  size_t opened_ = 0;
  size_t ended_ = 0;
  Point last_;           // not given to fit_ yet
  double least_ns_ = 0;  // that a read took, of the first ones; 0: not known
  // Of the time since then: one read after another is followed to its end.
  LineFit busy_;
  std::deque<size_t> sizes_;  // of the reads under way, while adapts()
  size_t bytes_under_way_ = 0;
  int probe_left_ = 0;      // reads up to the end of that one; 0: there is none
  size_t probe_bytes_ = 0;  // theirs
  uint64_t probe_ns_ = 0;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_CHUNK_TUNER_H_
