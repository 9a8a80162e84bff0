// Limits the streams of a session that are open at once.

#ifndef PENSTOCK_TRANSPORT_SESSION_ADMISSION_H_
#define PENSTOCK_TRANSPORT_SESSION_ADMISSION_H_

#include <cstdint>
#include <deque>

#include "transport/session/stream.h"

namespace penstock {
namespace session {

// A server refuses a stream for which there is no place. A client, which knows
// the server's limit, blocks it until another one ends. Not thread-safe.
class Admission {
 public:
  explicit Admission(uint32_t max_streams) : max_streams_(max_streams) {}

  void set_max_streams(uint32_t max_streams) { max_streams_ = max_streams; }

  bool full() const { return open_ >= max_streams_; }
  // Counts it as open. There is a place.
  void Open(Stream* stream);
  // Opens a client's stream or, where there is no place for it, blocks it.
  void OpenOrBlock(uint32_t id, Stream* stream);
  // Frees the stream's place, if the stream had one.
  void Close(Stream* stream);
  // Takes the stream that has been blocked the longest, if a place is free. The
  // stream may have ended meanwhile. If not, call Open() next.
  bool TakeBlocked(uint32_t* id);

 private:
  uint32_t max_streams_;
  uint32_t open_ = 0;
  std::deque<uint32_t> blocked_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_ADMISSION_H_
