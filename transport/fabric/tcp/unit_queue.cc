#include "transport/fabric/tcp/unit_queue.h"

namespace penstock {
namespace fabric {
namespace tcp {
namespace {

// Limits the queued bytes. Above this limit the session keeps its packets, and
// can still merge them.
constexpr size_t kMaxQueuedBytes = 256 * 1024;

}  // namespace

void UnitQueue::Add(const UnitHeader& header, absl::Span<const uint8_t> body) {
  if (closed_) return;
  if (open_ == nullptr) {
    open_ = std::make_shared<std::string>();
    pieces_.push_back(memory::Bytes{nullptr, 0, open_});
  }
  AppendUnitHeader(header, open_.get());
  open_->append(reinterpret_cast<const char*>(body.data()), body.size());
  bytes_ += kUnitHeaderBytes + body.size();
}

void UnitQueue::AddBytes(memory::Bytes bytes) {
  if (closed_) return;
  CloseOpen();
  bytes_ += bytes.size;
  pieces_.push_back(std::move(bytes));
}

void UnitQueue::CloseOpen() {
  if (open_ == nullptr) return;
  pieces_.back() = memory::Bytes{
      reinterpret_cast<const uint8_t*>(open_->data()), open_->size(), open_};
  open_ = nullptr;
}

bool UnitQueue::HasCredit() {
  if (bytes_ <= kMaxQueuedBytes) return true;
  wants_credit_ = true;
  return false;
}

bool UnitQueue::TakeCredit() {
  if (!wants_credit_ || bytes_ > kMaxQueuedBytes || closed_) return false;
  wants_credit_ = false;
  return true;
}

std::vector<memory::Bytes> UnitQueue::Take() {
  CloseOpen();
  bytes_ = 0;
  return std::exchange(pieces_, {});
}

void UnitQueue::Close() {
  closed_ = true;
  pieces_.clear();
  open_ = nullptr;
}

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock
