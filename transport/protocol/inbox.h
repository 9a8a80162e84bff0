// What has arrived for one stream, in order: a message that is still being
// read holds back what came after it, on this stream alone.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_INBOX_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_INBOX_H_

#include <cstdint>
#include <string>
#include <utility>

#include "transport/base/fifo.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace protocol {

class Inbox {
 public:
  enum class Kind { kHeaders, kMessage, kTooLarge, kHalfClose, kTrailers };

  struct Item {
    Kind kind = Kind::kMessage;
    std::string bytes;        // kHeaders, kTrailers, and a short kMessage
    memory::Bytes message;    // any other kMessage, when ready
    bool compressed = false;  // kMessage
    bool ready = true;
    uint64_t id = 0;      // of the announcement that it is, or came after
    uint64_t length = 0;  // kTooLarge: of the message that was dropped
  };

  // One more, to be filled in.
  Item& Add(Kind kind) {
    Item& item = items_.emplace_back();
    item.kind = kind;
    item.id = last_id_;
    if (IsMetadata(item)) ++metadata_items_;
    return item;
  }
  // A message that was announced, and is to be completed. Ids only grow.
  Item& AddAnnounced(uint64_t id) {
    last_id_ = id;
    Item& item = Add(Kind::kMessage);
    item.ready = false;
    return item;
  }
  bool empty() const { return items_.empty(); }
  // Those that wait and cost the sender no window.
  size_t metadata_items() const { return metadata_items_; }
  // The announced message `id` has been read. False if it is not here.
  bool Complete(uint64_t id, memory::Bytes message);
  static bool IsMetadata(const Item& item) {
    return item.kind != Kind::kMessage && item.kind != Kind::kTooLarge;
  }
  // Takes the next item if it may be delivered.
  bool Take(Item* item);
  static memory::Bytes MessageOf(Item* item) {
    if (item->message.owner != nullptr) return std::move(item->message);
    return {reinterpret_cast<const uint8_t*>(item->bytes.data()),
            item->bytes.size(), nullptr};
  }

 private:
  // What a unary call has, which may all be here before it is attached.
  base::Fifo<Item, 3> items_;
  size_t metadata_items_ = 0;
  uint64_t last_id_ = 0;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_INBOX_H_
