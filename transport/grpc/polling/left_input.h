// Lets a thread stop polling although paths still have input. No doorbell rings
// for this input, so another thread must take over.

#ifndef PENSTOCK_TRANSPORT_GRPC_POLLING_LEFT_INPUT_H_
#define PENSTOCK_TRANSPORT_GRPC_POLLING_LEFT_INPUT_H_

#include "transport/progress/left_input.h"

namespace penstock {
namespace core {

// Returns the record of input that was left in the paths of PollSet::Get().
// Never destroyed.
progress::LeftInput* LeftInputOfProcess();

// Makes some thread poll all paths soon. Call when input is left for which no
// doorbell will ring. A thread that waits again polls the paths. If all threads
// sleep, this thread polls for a turn, and then a thread of gRPC's executor
// polls. Call in an ExecCtx.
void LeaveInput();

// Polls all paths for a limited time. If input may be left afterwards, makes
// another thread poll later. Call in an ExecCtx.
void PollLeftInput();

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_POLLING_LEFT_INPUT_H_
