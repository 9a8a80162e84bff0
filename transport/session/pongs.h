// Answers the peer's pings.

#ifndef PENSTOCK_TRANSPORT_SESSION_PONGS_H_
#define PENSTOCK_TRANSPORT_SESSION_PONGS_H_

#include <cstdint>

#include "absl/types/optional.h"
#include "transport/session/fast_path.h"
#include "transport/session/frame_writer.h"

namespace penstock {
namespace session {

// The answers to a peer's pings. Not thread-safe.
class Pongs {
 public:
  // Refers to all arguments, which must outlive this object.
  Pongs(FrameWriter* writer, FastPath* path) : writer_(writer), path_(path) {}

  // Answers the ping. If Hold() was called, answers later, in Release().
  void OnPing(uint64_t cookie);
  // Delays the answer to the next ping until Release(). Answers later pings
  // immediately.
  void Hold() { holds_ = true; }
  void Release();

 private:
  void Send(uint64_t cookie);

  FrameWriter* const writer_;
  FastPath* const path_;
  bool holds_ = false;
  absl::optional<uint64_t> held_;  // the unanswered ping
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_PONGS_H_
