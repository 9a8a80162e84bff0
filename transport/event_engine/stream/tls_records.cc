#include "transport/event_engine/stream/tls_records.h"

#include <algorithm>

namespace penstock {
namespace event_engine {
namespace {

constexpr size_t kHeadBytes = 5;
constexpr size_t kLengthAt = 3;  // two bytes, big-endian

}  // namespace

size_t TlsRecords::TakeRecord(absl::Span<const uint8_t> bytes) {
  size_t taken = 0;
  while (taken < bytes.size() && (taken == 0 || !at_boundary())) {
    if (head_ == 0 && body_ > 0) {
      const size_t part = std::min(body_, bytes.size() - taken);
      body_ -= part;
      taken += part;
      continue;
    }
    if (head_ == 0) type_ = bytes[taken];
    if (head_ >= kLengthAt) body_ = body_ << 8 | bytes[taken];
    ++taken;
    if (++head_ == kHeadBytes) head_ = 0;
  }
  return taken;
}

void TlsRecords::Take(absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) bytes.remove_prefix(TakeRecord(bytes));
}

}  // namespace event_engine
}  // namespace penstock
