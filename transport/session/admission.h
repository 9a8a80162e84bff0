// Caps how many streams of a session are open at the same time.

#ifndef PENSTOCK_TRANSPORT_SESSION_ADMISSION_H_
#define PENSTOCK_TRANSPORT_SESSION_ADMISSION_H_

#include <cstdint>
#include <deque>

#include "transport/session/stream.h"

namespace penstock {
namespace session {

// Counts open streams against a limit. A server refuses a stream above the
// limit. A client knows the server's limit and blocks such a stream until
// another one ends. Not thread-safe.
class Admission {
 public:
  explicit Admission(uint32_t max_streams) : max_streams_(max_streams) {}

  void set_max_streams(uint32_t max_streams) { max_streams_ = max_streams; }

  bool full() const { return open_ >= max_streams_; }
  // Counts `stream` as open. Call only if !full().
  void Open(Stream* stream);
  // Opens a client's stream. If full(), blocks the stream until TakeBlocked().
  void OpenOrBlock(uint32_t id, Stream* stream);
  // Frees the stream's slot. Does nothing if the stream is not open.
  void Close(Stream* stream);
  // Removes from the queue the stream that has been blocked longest. Returns
  // false if the queue is empty, or if full() is true. Call Open() next, unless
  // the stream has ended meanwhile.
  bool TakeBlocked(uint32_t* id);

 private:
  uint32_t max_streams_;
  uint32_t open_ = 0;
  std::deque<uint32_t> blocked_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_ADMISSION_H_
