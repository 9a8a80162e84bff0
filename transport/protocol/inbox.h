// What has arrived for one stream, in order: a message that is still being
// read holds back what came after it, on this stream alone.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_INBOX_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_INBOX_H_

#include <cstdint>
#include <list>
#include <string>

#include "transport/memory/bytes.h"

namespace penstock {
namespace protocol {

class Inbox {
 public:
  enum class Kind { kHeaders, kMessage, kTooLarge, kHalfClose, kTrailers };

  struct Item {
    Kind kind = Kind::kMessage;
    std::string metadata;     // kHeaders, kTrailers
    memory::Bytes message;    // kMessage, when ready
    bool compressed = false;  // kMessage
    bool ready = true;
    uint64_t id = 0;      // of the announcement, while not ready
    uint64_t length = 0;  // kTooLarge: of the message that was dropped
  };

  void Add(Item item) {
    if (IsMetadata(item)) ++metadata_items_;
    items_.push_back(std::move(item));
  }
  bool empty() const { return items_.empty(); }
  // Those that wait and cost the sender no window.
  size_t metadata_items() const { return metadata_items_; }
  // The announced message `id` has been read. False if it is not here.
  bool Complete(uint64_t id, memory::Bytes message);
  // Takes the next item if it may be delivered.
  bool Take(Item* item);

 private:
  static bool IsMetadata(const Item& item) {
    return item.kind != Kind::kMessage && item.kind != Kind::kTooLarge;
  }

  std::list<Item> items_;
  size_t metadata_items_ = 0;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_INBOX_H_
