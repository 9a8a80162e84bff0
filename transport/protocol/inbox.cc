#include "transport/protocol/inbox.h"

#include <utility>

namespace penstock {
namespace protocol {

bool Inbox::Complete(uint64_t id, memory::Bytes message) {
  for (Item& item : items_) {
    if (item.ready || item.id != id) continue;
    item.message = std::move(message);
    item.ready = true;
    return true;
  }
  return false;
}

bool Inbox::Take(Item* item) {
  if (items_.empty() || !items_.front().ready) return false;
  items_.pop_front(item);
  if (IsMetadata(*item)) --metadata_items_;
  return true;
}

}  // namespace protocol
}  // namespace penstock
