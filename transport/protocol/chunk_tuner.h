// Chooses the size of the pieces in which a receiver reads messages over one
// path.
//
// Measures the latency and the bandwidth of a path by its first reads after an
// idle time. These reads run back to back. Measured from the start of the first
// read, each read ends after
//
//   time = latency + bytes up to the end of the read / bandwidth
//
// (L and G of LogGP; Alexandrov and others, SPAA 1995). A line through these
// points gives both values. With n concurrent reads, two rules give the size of
// a piece:
//
// - n pieces hold kPipes times the capacity of the path, which is latency times
//   bandwidth. The path then stays busy while the next pieces are requested.
//   This rule never makes a piece smaller than the start size, because smaller
//   pieces would gain nothing.
// - One piece takes at most kMaxDelayNs more than an n-th of the latency,
//   because a small message may wait behind the piece. Bytes within the
//   capacity of the path delay no other message: smaller pieces would only
//   leave the path idle.
//
// On a path that is never idle, only the bandwidth can be measured: the bytes
// in flight at some moment, divided by the time until they have arrived.
// Ignores a time hardly longer than the shortest read of the path, because such
// a time shows latency rather than bandwidth.

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

// Has no clock: the caller passes times, in nanoseconds from any origin. The
// caller must read a clock only for Begin(), for OnRead() while wants_start(),
// and for OnReadDone() while wants_end(). Not thread-safe.
class ChunkTuner {
 public:
  // Caps the time that one piece may occupy the path, beyond its share of the
  // latency. The size may exceed the estimate by SteppedSize::kMargin, so the
  // time may reach a millisecond.
  static constexpr double kMaxDelayNs = 600 * 1000;
  // The number of pieces in flight, in capacities of the path. Two capacities
  // keep the path busy even if the size is below the estimate by
  // SteppedSize::kMargin. Two more keep the path busy while the reader's thread
  // does not run. More would only lengthen the queue for other messages. A path
  // with one read at a time spends a fifth of its time waiting.
  static constexpr double kPipes = 4;

  // Makes a tuner. `first_is_pushed`: the peer sends the first piece of each
  // message without a request. The transfer of this piece hides a part of the
  // latency, so only the rest of the latency is measured.
  ChunkTuner(const SizeBounds& bounds, bool first_is_pushed, int max_reads)
      : size_(bounds),
        start_(bounds.start),
        first_is_pushed_(first_is_pushed),
        max_reads_(max_reads) {}

  size_t chunk_bytes() const { return size_.value(); }
  bool adapts() const { return !size_.is_fixed(); }

  // Returns true if no read is in flight.
  bool idle() const { return under_way_ == 0; }
  // Begins a measurement at the first read of a message. Requires idle().
  void Begin(uint64_t now_ns);
  // Records that the first read of a message starts while other reads are in
  // flight. The opening reads of that message are not measured.
  void BeginBehindOthers() { opening_ = false; }
  // Records the start of a read in OnRead(), and its end in OnReadDone(). Reads
  // end nearly in the order in which they start.
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
  double ns_per_byte_ = 0;  // the last measurement; 0: none yet

  // The measured points of the opening reads: the reads after Begin(), until
  // the first of them ends or another message begins.
  LineFit fit_;
  bool opening_ = false;   // the next read is an opening read
  bool measures_ = false;  // an opening read is under way
  uint64_t begun_ns_ = 0;
  // For each opening read, the bytes up to its end. The array's size limits the
  // number of measured reads.
  std::array<size_t, 16> ends_;
  size_t opened_ = 0;
  size_t ended_ = 0;
  Point last_;           // the last point, not in fit_ yet
  double least_ns_ = 0;  // the shortest time of an opening read; 0: none yet

  // The measured points of the probes. While the path is busy, one read at a
  // time is a probe: the tuner measures its time, and the bytes in flight at
  // its start.
  LineFit busy_;
  std::deque<size_t> sizes_;  // of the reads under way, while adapts()
  size_t bytes_under_way_ = 0;
  int probe_left_ = 0;  // reads to end up to and including the probe; 0: no
                        // probe
  size_t probe_bytes_ = 0;
  uint64_t probe_ns_ = 0;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_CHUNK_TUNER_H_
