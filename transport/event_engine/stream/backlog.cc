#include "transport/event_engine/stream/backlog.h"

#include <cstdint>
#include <utility>

namespace penstock {
namespace event_engine {
namespace {

// Ends a merged piece at this size. Larger pieces would save little memory.
constexpr size_t kMergedBytes = 4 * Backlog::kSmallBytes;

void AppendTo(std::string* text, const memory::Bytes& bytes) {
  text->append(reinterpret_cast<const char*>(bytes.data), bytes.size);
}

}  // namespace

constexpr size_t Backlog::kSmallBytes;

void Backlog::Append(memory::Bytes bytes) {
  size_ += bytes.size;
  if (bytes.size >= kSmallBytes) {
    Finish();
    whole_.Append(std::move(bytes));
    return;
  }
  if (small_.size == 0 && merged_ == nullptr) {
    small_ = std::move(bytes);
    return;
  }
  if (merged_ == nullptr) {
    merged_ = std::make_shared<std::string>();
    AppendTo(merged_.get(), small_);
    small_ = memory::Bytes();
  }
  AppendTo(merged_.get(), bytes);
  if (merged_->size() >= kMergedBytes) Finish();
}

memory::Payload Backlog::Take() {
  Finish();
  size_ = 0;
  memory::Payload all = std::move(whole_);
  whole_ = memory::Payload();
  return all;
}

void Backlog::Finish() {
  if (merged_ != nullptr) {
    const auto* const data = reinterpret_cast<const uint8_t*>(merged_->data());
    whole_.Append(memory::Bytes{data, merged_->size(), merged_});
    merged_ = nullptr;
  }
  whole_.Append(std::move(small_));  // ignored if empty
  small_ = memory::Bytes();
}

}  // namespace event_engine
}  // namespace penstock
