#include "transport/protocol/inbox.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace protocol {

bool Inbox::Complete(uint64_t id, memory::Payload message) {
  // Finds the first item with the id, which is the message. Items that arrive
  // after the message have the same id.
  const auto item = std::lower_bound(
      items_.begin(), items_.end(), id,
      [](const Item& other, uint64_t id) { return other.id < id; });
  if (item == items_.end() || item->id != id || item->ready) return false;
  item->message = std::make_unique<const memory::Payload>(std::move(message));
  item->ready = true;
  return true;
}

bool Inbox::Take(Item* item) {
  if (items_.empty() || !items_.front().ready) return false;
  items_.pop_front(item);
  if (IsMetadata(*item)) --metadata_items_;
  return true;
}

}  // namespace protocol
}  // namespace penstock
