// Lets a thread stop polling after a while, and hands remaining input, for
// which no doorbell rings, to another thread.

#ifndef PENSTOCK_TRANSPORT_GRPC_LEFT_INPUT_H_
#define PENSTOCK_TRANSPORT_GRPC_LEFT_INPUT_H_

#include "transport/progress/left_input.h"

namespace penstock {
namespace core {

// Returns the record of remaining input of the paths in PollSet::Get(). Never
// destroyed.
progress::LeftInput* LeftInputOfProcess();

// Makes a thread poll all paths soon. Call when input remains for which no
// doorbell will ring. The thread is one that returns to wait. If all threads
// sleep, this thread polls for a turn, and then a thread of gRPC's executor
// polls. Call in an ExecCtx.
void LeaveInput();

// Polls all paths for a turn. If input may remain, makes a different thread
// poll later. Call in an ExecCtx.
void PollLeftInput();

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_LEFT_INPUT_H_
