#include "transport/event_engine/stream/tls_handshake.h"

namespace penstock {
namespace event_engine {
namespace {

constexpr uint8_t kApplicationData = 23;  // the type of the record

}  // namespace

void TlsHandshake::OnSent(absl::Span<const uint8_t> bytes) {
  if (state_ != State::kInProgress || bytes.empty()) return;
  if (is_client_) {
    TakeOpening(bytes);
    has_proof_ |= TakeRecords(bytes);
  }
  has_answered_ = true;
  if (has_proof_ && opening_.state() == TlsOpening::State::kTls) {
    state_ = State::kOver;
  }
}

void TlsHandshake::OnReceived(absl::Span<const uint8_t> bytes) {
  if (state_ != State::kInProgress || is_client_) return;
  TakeOpening(bytes);
  has_proof_ |= TakeRecords(bytes) && has_answered_;
}

void TlsHandshake::TakeOpening(absl::Span<const uint8_t> bytes) {
  opening_.Take(bytes);
  if (opening_.state() == TlsOpening::State::kOther) state_ = State::kOther;
}

bool TlsHandshake::TakeRecords(absl::Span<const uint8_t> bytes) {
  bool found = false;
  while (!bytes.empty()) {
    bytes.remove_prefix(records_.TakeRecord(bytes));
    found |= records_.at_boundary() && records_.type() == kApplicationData;
  }
  return found;
}

}  // namespace event_engine
}  // namespace penstock
