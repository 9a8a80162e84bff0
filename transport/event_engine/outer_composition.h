// Credentials that the program composes outside of penstock::Credentials().

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_OUTER_COMPOSITION_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_OUTER_COMPOSITION_H_

#include "grpc/grpc_security.h"

namespace penstock {
namespace event_engine {

// Returns credentials for grpc::CompositeChannelCredentials(), which makes
// channels without Penstock because it sees only the core's credentials of its
// argument. Calls of such a channel go over stock gRPC, with a warning. With
// `is_required`, each call fails, and the error names the remedy. The caller
// owns the result. Returns null for null.
grpc_channel_credentials* ForOuterComposition(grpc_channel_credentials* wrapped,
                                              bool is_required);

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_OUTER_COMPOSITION_H_
