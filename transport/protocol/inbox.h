// What has arrived for one stream, in order: a message that is still being
// read holds back what came after it, on this stream alone.

#ifndef PENSTOCK_TRANSPORT_PROTOCOL_INBOX_H_
#define PENSTOCK_TRANSPORT_PROTOCOL_INBOX_H_

#include <cstdint>
#include <deque>
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

  void Add(Item item) { items_.push_back(std::move(item)); }
  // The announced message `id` has been read. False if it is not here.
  bool Complete(uint64_t id, memory::Bytes message);
  // Takes the next item if it may be delivered.
  bool Take(Item* item);

 private:
  std::deque<Item> items_;
};

}  // namespace protocol
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROTOCOL_INBOX_H_
