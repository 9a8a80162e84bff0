#include "tensor_service/direct_receive.h"

#include <atomic>
#include <functional>

#include "grpcpp/support/slice.h"

namespace penstock::tensor {
namespace {

// The receiver of this process. Null means none, so that a constant initialiser
// suffices, which needs no start-up code.
std::atomic<DirectReceiver*> direct_receiver{nullptr};

bool Overlaps(const ReceiveRange& range, const grpc::Slice& slice) {
  const auto* const begin = static_cast<const uint8_t*>(range.data);
  const std::less<const uint8_t*> before;
  return slice.size() > 0 && range.size > 0 &&
         before(slice.begin(), begin + range.size) &&
         before(begin, slice.end());
}

}  // namespace

DirectReceiver* GetDirectReceiver() {
  return direct_receiver.load(std::memory_order_acquire);
}

void SetDirectReceiver(DirectReceiver* receiver) {
  direct_receiver.store(receiver, std::memory_order_release);
}

bool LiesIn(const grpc::ByteBuffer& message,
            const std::vector<ReceiveRange>& ranges) {
  std::vector<grpc::Slice> slices;
  if (!message.Valid() || !message.Dump(&slices).ok()) return false;
  for (const grpc::Slice& slice : slices) {
    for (const ReceiveRange& range : ranges) {
      if (Overlaps(range, slice)) return true;
    }
  }
  return false;
}

}  // namespace penstock::tensor
