// The connections of the process, for reports.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_CONNECTIONS_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_CONNECTIONS_H_

#include <memory>
#include <vector>

#include "transport/event_engine/movable_connection.h"

namespace penstock {
namespace event_engine {

// Remembers `connection` as long as others hold it. Thread-safe.
void AddConnection(const std::shared_ptr<MovableConnection>& connection);
// Returns the connections that exist. Thread-safe.
std::vector<std::shared_ptr<MovableConnection>> AllConnections();

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_CONNECTIONS_H_
