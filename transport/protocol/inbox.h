// The queue of what has arrived for one stream. A message that is still being
// read holds back what came after it, but not other streams.

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

// Not thread-safe.
class Inbox {
 public:
  enum class Kind { kHeaders, kMessage, kTooLarge, kHalfClose, kTrailers };

  struct Item {
    Kind kind = Kind::kMessage;
    std::string bytes;  // of kHeaders, kTrailers and a short kMessage
    // Of any other kMessage, once it is ready; else null.
    std::unique_ptr<const memory::Payload> message;
    bool compressed = false;  // of kMessage
    bool ready = true;        // false: still being read
    uint64_t id = 0;          // the announced message it is or comes after
    uint64_t length = 0;      // of kTooLarge: the size of the dropped message
  };

  // Adds an item and returns it, for the caller to fill in.
  Item& Add(Kind kind) {
    Item& item = items_.emplace_back();
    item.kind = kind;
    item.id = last_id_;
    if (IsMetadata(item)) ++metadata_items_;
    return item;
  }
  // Adds an announced message, which is not ready until Complete(). Each id is
  // greater than those before.
  Item& AddAnnounced(uint64_t id) {
    last_id_ = id;
    Item& item = Add(Kind::kMessage);
    item.ready = false;
    return item;
  }
  bool empty() const { return items_.empty(); }
  // Returns how many items cost the sender none of the stream's window.
  size_t metadata_items() const { return metadata_items_; }
  // Makes the announced message `id` ready, with its bytes. Returns false if it
  // is not in the queue.
  bool Complete(uint64_t id, memory::Payload message);
  // Whether the item costs the sender none of the stream's window.
  static bool IsMetadata(const Item& item) {
    return item.kind != Kind::kMessage && item.kind != Kind::kTooLarge;
  }
  // Moves the oldest item to `*item`, if it is ready. Else returns false.
  bool Take(Item* item);
  // Returns the bytes of a kMessage. A piece without an owner points into
  // `item`.
  static memory::Payload MessageOf(const Item& item) {
    if (item.message != nullptr) return *item.message;
    return memory::Payload({reinterpret_cast<const uint8_t*>(item.bytes.data()),
                            item.bytes.size(), nullptr});
  }

 private:
  // Three items inline: all that a unary call has, if it comes before the
  // stream is attached.
  base::Fifo<Item, 3> items_;
  size_t metadata_items_ = 0;
  uint64_t last_id_ = 0;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_INBOX_H_
