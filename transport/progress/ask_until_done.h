// One background thread that asks again and again, for what no descriptor tells
// of: the events of devices.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_ASK_UNTIL_DONE_H_
#define PENSTOCK_TRANSPORT_PROGRESS_ASK_UNTIL_DONE_H_

#include <functional>

#include "absl/status/status.h"

namespace penstock {
namespace progress {

// Calls `is_done` on the thread until it returns true: the later the less
// often, so that it is noticed late by an eighth of the time that it took, and
// by 1 ms at most, or whatever the others take that are asked. `is_done` must
// not block, and may call this. No lock is held meanwhile. Returns
// RESOURCE_EXHAUSTED, and calls nothing, if there is no thread and none can be
// started. In the child of a fork, nothing of before the fork is asked.
// Thread-safe; never blocks.
absl::Status AskUntilDone(std::function<bool()> is_done);

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_ASK_UNTIL_DONE_H_
