#include "transport/session/stream_table.h"

#include <new>
#include <utility>

namespace penstock {
namespace session {
namespace {

// Limits the erased streams whose memory an idle session keeps. Enough for a
// few concurrent calls.
constexpr size_t kMaxSpare = 4;

template <typename Memory>
Stream* StreamIn(const std::unique_ptr<Memory>& memory) {
  return reinterpret_cast<Stream*>(memory.get());
}

}  // namespace

StreamTable::~StreamTable() {
  for (auto& entry : streams_) StreamIn(entry.second)->~Stream();
}

void StreamTable::FindOther(uint32_t id) {
  auto it = streams_.find(id);
  recent_ = it == streams_.end() ? nullptr : StreamIn(it->second);
  recent_id_ = id;
}

Stream* StreamTable::Add(uint32_t id, uint64_t send_window,
                         uint64_t receive_window) {
  std::unique_ptr<Memory> memory;
  if (spare_.empty()) {
    memory.reset(new Memory);
  } else {
    memory = std::move(spare_.back());
    spare_.pop_back();
  }
  recent_ = new (memory.get()) Stream(send_window, receive_window);
  recent_id_ = id;
  streams_[id] = std::move(memory);
  return recent_;
}

void StreamTable::Erase(uint32_t id) {
  auto it = streams_.find(id);
  if (it == streams_.end()) return;
  std::unique_ptr<Memory> memory = std::move(it->second);
  streams_.erase(it);
  if (recent_id_ == id) recent_ = nullptr;
  StreamIn(memory)->~Stream();
  if (spare_.size() < kMaxSpare) spare_.push_back(std::move(memory));
}

}  // namespace session
}  // namespace penstock
