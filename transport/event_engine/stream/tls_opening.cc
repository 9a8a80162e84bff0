#include "transport/event_engine/stream/tls_opening.h"

namespace penstock {
namespace event_engine {
namespace {

constexpr uint8_t kHandshake = 22;   // the type of the record
constexpr uint8_t kClientHello = 1;  // the type of the message
constexpr uint8_t kMajorVersion = 3;

}  // namespace

constexpr size_t TlsOpening::kBytes;

void TlsOpening::Take(absl::Span<const uint8_t> bytes) {
  for (uint8_t byte : bytes) {
    if (state_ != State::kIncomplete) return;
    bytes_.push_back(static_cast<char>(byte));
    if (!IsPossible(bytes_.size() - 1)) state_ = State::kOther;
    if (state_ == State::kIncomplete && bytes_.size() == kBytes) {
      state_ = State::kTls;
    }
  }
}

// Returns true if a ClientHello may have the collected byte at offset `at`.
bool TlsOpening::IsPossible(size_t at) const {
  const uint8_t byte = static_cast<uint8_t>(bytes_[at]);
  switch (at) {
    case 0:
      return byte == kHandshake;
    case 1:  // the record's version
    case 9:  // the message's version
      return byte == kMajorVersion;
    case 5:
      return byte == kClientHello;
    default:
      return true;
  }
}

}  // namespace event_engine
}  // namespace penstock
