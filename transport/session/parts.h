// Objects that a session's parts share.

#ifndef PENSTOCK_TRANSPORT_SESSION_PARTS_H_
#define PENSTOCK_TRANSPORT_SESSION_PARTS_H_

#include "transport/base/buffer_pool.h"
#include "transport/fabric/fabric.h"
#include "transport/session/budget.h"
#include "transport/session/config.h"
#include "transport/session/counters.h"
#include "transport/session/frame_writer.h"
#include "transport/session/recorder.h"
#include "transport/session/sender.h"

namespace penstock {
namespace session {

// Pointers to a session's parts, for parts that use other parts. The session
// owns all of them.
struct Parts {
  const Config* config;
  fabric::Endpoint* lifeline;
  base::BufferPool* buffers;
  Budget* budget;
  Sender* sender;
  FrameWriter* writer;
  Counters* counters;
  const Recorder* recorder;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_PARTS_H_
