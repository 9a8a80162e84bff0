// Converts gRPC's slices to memory::Payload and back. Large slices are not
// copied.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_SLICES_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_SLICES_H_

#include "grpc/event_engine/slice_buffer.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace event_engine {

// Returns the bytes of `slices`. Either takes over the slices and leaves
// `slices` empty, or copies the bytes.
memory::Payload TakePayload(
    grpc_event_engine::experimental::SliceBuffer* slices);
// Appends `payload` to `slices`, which then share its owners.
void AppendPayload(const memory::Payload& payload,
                   grpc_event_engine::experimental::SliceBuffer* slices);

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_SLICES_H_
