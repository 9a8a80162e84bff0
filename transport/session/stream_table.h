// A table of a session's streams by id.

#ifndef PENSTOCK_TRANSPORT_SESSION_STREAM_TABLE_H_
#define PENSTOCK_TRANSPORT_SESSION_STREAM_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "transport/session/stream.h"

namespace penstock {
namespace session {

// The owner of a session's streams. Reuses the memory of the last erased
// streams, so that short streams need no heap allocation. Not thread-safe.
class StreamTable {
 public:
  StreamTable() = default;
  StreamTable(const StreamTable&) = delete;
  StreamTable& operator=(const StreamTable&) = delete;
  ~StreamTable();

  bool empty() const { return streams_.empty(); }
  size_t size() const { return streams_.size(); }
  // Returns the stream, or null. Fast if the id is the same as in the last
  // call, which is the common case.
  Stream* FindAny(uint32_t id) {
    if (recent_ == nullptr || id != recent_id_) FindOther(id);
    return recent_;
  }
  // Returns the stream, like FindAny(), but null also for a draining stream.
  Stream* Find(uint32_t id) {
    Stream* const found = FindAny(id);
    return found == nullptr || found->draining ? nullptr : found;
  }
  // Adds a stream. No stream of this id may exist.
  Stream* Add(uint32_t id, uint64_t send_window, uint64_t receive_window);
  void Erase(uint32_t id);
  // Returns the id of any stream. Call only if !empty().
  uint32_t first_id() const { return streams_.begin()->first; }

 private:
  using Memory = std::aligned_storage<sizeof(Stream), alignof(Stream)>::type;

  void FindOther(uint32_t id);

  absl::flat_hash_map<uint32_t, std::unique_ptr<Memory>> streams_;
  std::vector<std::unique_ptr<Memory>> spare_;
  uint32_t recent_id_ = 0;
  Stream* recent_ = nullptr;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_STREAM_TABLE_H_
