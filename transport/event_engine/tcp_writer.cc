#include "transport/event_engine/tcp_writer.h"

#include <algorithm>
#include <utility>

namespace penstock {
namespace event_engine {

bool TcpWriter::StartNext(Endpoint* endpoint, Callback on_written, Item* done) {
  Item& item = items_.front();
  writes_ = true;
  if (!endpoint->Write(std::move(on_written), &item.bytes,
                       std::move(item.args))) {
    return false;
  }
  *done = Finish();
  return true;
}

TcpWriter::Item TcpWriter::Finish() {
  Item item = std::move(items_.front());
  items_.pop_front();
  writes_ = false;
  return item;
}

std::vector<TcpWriter::Callback> TcpWriter::TakeCallbacks() {
  std::vector<Callback> taken;
  for (Item& item : items_) {
    if (item.done != nullptr)
      taken.push_back(std::exchange(item.done, nullptr));
  }
  return taken;
}

bool TcpWriter::has_accepted_bytes() const {
  return std::any_of(items_.begin(), items_.end(),
                     [](const Item& item) { return item.has_accepted_bytes; });
}

std::vector<TcpWriter::Item> TcpWriter::TakeWaiting() {
  std::vector<Item> taken;
  while (items_.size() > (writes_ ? 1 : 0)) {
    taken.push_back(std::move(items_.back()));
    items_.pop_back();
  }
  return taken;
}

}  // namespace event_engine
}  // namespace penstock
