// The queue of arrived items of one stream. A message that is still being read
// delays later items of its stream, but not other streams.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_INBOX_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_INBOX_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "transport/base/fifo.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace protocol {

// One stream's queue. Not thread-safe.
class Inbox {
 public:
  enum class Kind { kHeaders, kMessage, kTooLarge, kHalfClose, kTrailers };

  struct Item {
    Kind kind = Kind::kMessage;
    std::string bytes;  // of kHeaders, kTrailers and a short kMessage
    // The bytes of an announced kMessage, once ready. Otherwise null.
    std::unique_ptr<const memory::Payload> message;
    bool compressed = false;  // of kMessage
    bool ready = true;        // false: still being read
    uint64_t id = 0;  // the announced message, or the last one before this item
    uint64_t length = 0;  // of kTooLarge: the size of the dropped message
  };

  // Adds an item and returns it, for the caller to fill in.
  Item& Add(Kind kind) {
    Item& item = items_.emplace_back();
    item.kind = kind;
    item.id = last_id_;
    if (IsMetadata(item)) ++metadata_items_;
    return item;
  }
  // Adds an announced message, which is not ready until Complete(). Ids must
  // increase.
  Item& AddAnnounced(uint64_t id) {
    last_id_ = id;
    Item& item = Add(Kind::kMessage);
    item.ready = false;
    return item;
  }
  bool empty() const { return items_.empty(); }
  // Returns the number of items that use none of the stream's window.
  size_t metadata_items() const { return metadata_items_; }
  // Makes the announced message `id` ready, with its bytes. Returns false if
  // the message is not in the queue.
  bool Complete(uint64_t id, memory::Payload message);
  // Returns true if the item uses none of the stream's window.
  static bool IsMetadata(const Item& item) {
    return item.kind != Kind::kMessage && item.kind != Kind::kTooLarge;
  }
  // Moves the oldest item to `*item`, if it is ready. Otherwise returns false.
  bool Take(Item* item);
  // Returns the bytes of a kMessage. Bytes without an owner point into `item`.
  static memory::Payload MessageOf(const Item& item) {
    if (item.message != nullptr) return *item.message;
    return memory::Payload({reinterpret_cast<const uint8_t*>(item.bytes.data()),
                            item.bytes.size(), nullptr});
  }

 private:
  // The items, oldest first. Three fit without an allocation: a whole unary
  // call may arrive before the stream is attached.
  base::Fifo<Item, 3> items_;
  size_t metadata_items_ = 0;
  uint64_t last_id_ = 0;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_INBOX_H_
