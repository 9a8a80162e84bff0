// Stops polling in time, without losing input for which no doorbell rings.

#ifndef PENSTOCK_TRANSPORT_GRPC_LEFT_INPUT_H_
#define PENSTOCK_TRANSPORT_GRPC_LEFT_INPUT_H_

#include "transport/progress/left_input.h"

namespace penstock {
namespace core {

// Returns the note about the paths of PollSet::Get(). Never destroyed.
progress::LeftInput* LeftInputOfProcess();

// Call it when input is left for which no doorbell will ring. Sees to it that a
// thread polls all paths soon: one that comes back to wait; or, if threads
// sleep, this one for a turn, and then one of gRPC's executor. Needs an
// ExecCtx.
void LeaveInput();

// Polls all paths for a turn. If there may be more input, leaves it. Needs an
// ExecCtx.
void PollLeftInput();

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_LEFT_INPUT_H_
