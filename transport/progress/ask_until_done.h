// Polls from one background thread, for events that no descriptor reports, such
// as events of devices.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_ASK_UNTIL_DONE_H_
#define PENSTOCK_TRANSPORT_PROGRESS_ASK_UNTIL_DONE_H_

#include <functional>

#include "absl/status/status.h"

namespace penstock {
namespace progress {

// Calls `is_done` on a background thread until the result is true. The pauses
// between calls grow with time: an event is noticed late by at most an eighth
// of the wait, at most 1 ms, plus the time of other callers' `is_done`.
// `is_done` must not block, and may call this function. No lock is held during
// a call.
//
// Returns RESOURCE_EXHAUSTED, and never calls `is_done`, if there is no thread
// and none can be started. In the child of a fork, calls from before the fork
// are dropped. Thread-safe; never blocks.
absl::Status AskUntilDone(std::function<bool()> is_done);

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_ASK_UNTIL_DONE_H_
