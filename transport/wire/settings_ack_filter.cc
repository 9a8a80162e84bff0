#include "transport/wire/settings_ack_filter.h"

#include <algorithm>

namespace penstock {
namespace wire {
namespace {

// The size of a frame header by RFC 9113, section 4.1: length (24 bits), type,
// flags, stream.
constexpr size_t kHeaderBytes = 9;
constexpr char kSettings = 4;
constexpr char kAck = 1;

size_t PayloadBytes(absl::string_view header) {
  size_t length = 0;
  for (char byte : header.substr(0, 3)) {
    length = length << 8 | static_cast<unsigned char>(byte);
  }
  return length;
}

bool IsSettingsAck(absl::string_view header) {
  return header[3] == kSettings && (header[4] & kAck) != 0;
}

}  // namespace

std::string SettingsAckFilter::Pass(absl::string_view bytes) {
  std::string out;
  while (!bytes.empty() && !done_) {
    bytes =
        payload_left_ > 0 ? PassPayload(bytes, &out) : PassHeader(bytes, &out);
  }
  out.append(bytes.data(), bytes.size());
  return out;
}

absl::string_view SettingsAckFilter::PassPayload(absl::string_view bytes,
                                                 std::string* out) {
  const size_t take = std::min(bytes.size(), payload_left_);
  payload_left_ -= take;
  out->append(bytes.data(), take);
  return bytes.substr(take);
}

absl::string_view SettingsAckFilter::PassHeader(absl::string_view bytes,
                                                std::string* out) {
  const size_t take = std::min(bytes.size(), kHeaderBytes - header_.size());
  header_.append(bytes.data(), take);
  if (header_.size() == kHeaderBytes) {
    payload_left_ = PayloadBytes(header_);
    // Removes the frame only if it has no payload: an acknowledgement with a
    // payload is an error, and gRPC should see it.
    done_ = IsSettingsAck(header_) && payload_left_ == 0;
    if (!done_) out->append(header_);
    header_.clear();
  }
  return bytes.substr(take);
}

}  // namespace wire
}  // namespace penstock
