#include "transport/event_engine/tcp_writer.h"

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
