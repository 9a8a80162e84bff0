#include "transport/rpc/guarded.h"

#include <utility>

namespace penstock {
namespace rpc {
namespace {

class LateOwner {
 public:
  explicit LateOwner(std::shared_ptr<const void> owner)
      : owner_(std::move(owner)) {}
  ~LateOwner() { LateOwners::Drop(std::move(owner_)); }
  LateOwner(const LateOwner&) = delete;
  LateOwner& operator=(const LateOwner&) = delete;

 private:
  std::shared_ptr<const void> owner_;
};

}  // namespace

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
