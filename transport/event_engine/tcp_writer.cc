#include "transport/event_engine/tcp_writer.h"

#include <utility>

namespace penstock {
namespace event_engine {

bool TcpWriter::StartNext(Endpoint* endpoint, Callback on_written,
                          Callback* done) {
  Item& item = items_.front();
  writes_ = true;
  if (!endpoint->Write(std::move(on_written), &item.bytes,
                       std::move(item.args))) {
    return false;
  }
  *done = Finish();
  return true;
}

TcpWriter::Callback TcpWriter::Finish() {
  Callback done = std::move(items_.front().done);
  items_.pop_front();
  writes_ = false;
  return done;
}

std::vector<TcpWriter::Callback> TcpWriter::DropWaiting() {
  std::vector<Callback> dropped;
  while (items_.size() > (writes_ ? 1 : 0)) {
    if (items_.back().done != nullptr) {
      dropped.push_back(std::move(items_.back().done));
    }
    items_.pop_back();
  }
  return dropped;
}

}  // namespace event_engine
}  // namespace penstock
