#include "transport/event_engine/stream/tls_handshake.h"

namespace penstock {
namespace event_engine {
namespace {

// The types of the records.
constexpr uint8_t kHandshake = 22;
constexpr uint8_t kApplicationData = 23;

}  // namespace

void TlsHandshake::OnSent(absl::Span<const uint8_t> bytes) {
  if (state_ != State::kInProgress || bytes.empty()) return;
  if (is_client_) {
    TakeOpening(bytes);
    TakeRecords(bytes);
  }
  has_answered_ = true;
  if (has_proof_ && opening_.state() == TlsOpening::State::kTls) {
    state_ = State::kOver;
  }
}

void TlsHandshake::OnReceived(absl::Span<const uint8_t> bytes) {
  if (state_ != State::kInProgress || is_client_) return;
  TakeOpening(bytes);
  TakeRecords(bytes);
}

void TlsHandshake::TakeOpening(absl::Span<const uint8_t> bytes) {
  opening_.Take(bytes);
  if (opening_.state() == TlsOpening::State::kOther) state_ = State::kOther;
}

void TlsHandshake::TakeRecords(absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    bytes.remove_prefix(records_.TakeRecord(bytes));
    if (records_.type() == kHandshake) {
      has_answered_ = false;
      has_proof_ = false;
    } else if (records_.type() == kApplicationData && records_.at_boundary()) {
      has_proof_ |= is_client_ || has_answered_;
    }
  }
}

}  // namespace event_engine
}  // namespace penstock
