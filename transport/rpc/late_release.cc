#include "transport/rpc/late_release.h"

#include <utility>

namespace penstock {
namespace rpc {

thread_local LateRelease* LateRelease::current_ = nullptr;

class LateOwner {
 public:
  explicit LateOwner(std::shared_ptr<const void> owner)
      : owner_(std::move(owner)) {}
  ~LateOwner() {
    LateRelease* const current = LateRelease::current_;
    if (current != nullptr) current->owners_.push_back(std::move(owner_));
  }
  LateOwner(const LateOwner&) = delete;
  LateOwner& operator=(const LateOwner&) = delete;

 private:
  std::shared_ptr<const void> owner_;
};

memory::Payload Guarded(const memory::Payload& payload) {
  memory::Payload guarded;
  for (const memory::Bytes& piece : payload.pieces()) {
    guarded.Append(memory::Bytes{piece.data, piece.size,
                                 std::make_shared<LateOwner>(piece.owner)});
  }
  return guarded;
}

}  // namespace rpc
}  // namespace penstock
