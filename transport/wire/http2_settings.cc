#include "transport/wire/http2_settings.h"

#include <algorithm>

namespace penstock {
namespace wire {
namespace {

constexpr size_t kHeaderBytes = 9;
constexpr size_t kSettingBytes = 6;
constexpr uint8_t kSettingsType = 4;
// Limits the length of the first frame, in bytes, so that waiting for its end
// is bounded. Real clients send fewer settings. A longer frame is passed to
// HTTP/2.
constexpr size_t kMaxFrameBytes = 100 * kSettingBytes;

uint32_t BigEndian(absl::string_view bytes) {
  uint32_t value = 0;
  for (char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

// Appends the low `bytes` bytes of `value`. Takes 64 bits, because one caller
// appends five bytes.
void AppendBigEndian(uint64_t value, int bytes, std::string* out) {
  for (int i = bytes - 1; i >= 0; --i) {
    out->push_back(static_cast<char>(value >> (8 * i)));
  }
}

}  // namespace

const char kHttp2Preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

uint8_t ChooseVersion(VersionRange mine, VersionRange peer) {
  const uint8_t version = std::min(mine.max, peer.max);
  return version >= mine.min && version >= peer.min ? version : 0;
}

std::string PenstockSettingsFrame(VersionRange versions) {
  std::string out;
  AppendBigEndian(kSettingBytes, 3, &out);
  AppendBigEndian(kSettingsType, 1, &out);
  AppendBigEndian(0, 5, &out);  // no flags, stream 0
  AppendBigEndian(kPenstockSetting, 2, &out);
  AppendBigEndian(kNegotiationMagic, 2, &out);
  AppendBigEndian(versions.min, 1, &out);
  AppendBigEndian(versions.max, 1, &out);
  return out;
}

SettingsVerdict InspectSettings(absl::string_view bytes, VersionRange* versions,
                                size_t* frame_bytes) {
  if (bytes.size() > 3 && bytes[3] != kSettingsType) {
    return SettingsVerdict::kOther;
  }
  if (bytes.size() < kHeaderBytes) return SettingsVerdict::kNeedMore;
  const size_t length = BigEndian(bytes.substr(0, 3));
  // Accepts only a frame without flags (an ACK has no settings), of stream 0,
  // with whole settings.
  if (BigEndian(bytes.substr(4, 1)) != 0 ||
      BigEndian(bytes.substr(5, 4)) != 0 || length % kSettingBytes != 0 ||
      length > kMaxFrameBytes) {
    return SettingsVerdict::kOther;
  }
  if (bytes.size() < kHeaderBytes + length) return SettingsVerdict::kNeedMore;
  for (size_t at = kHeaderBytes; at < kHeaderBytes + length;
       at += kSettingBytes) {
    if (BigEndian(bytes.substr(at, 2)) == kPenstockSetting &&
        BigEndian(bytes.substr(at + 2, 2)) == kNegotiationMagic) {
      versions->min = static_cast<uint8_t>(bytes[at + 4]);
      versions->max = static_cast<uint8_t>(bytes[at + 5]);
      *frame_bytes = kHeaderBytes + length;
      return SettingsVerdict::kPenstock;
    }
  }
  return SettingsVerdict::kOther;
}

}  // namespace wire
}  // namespace penstock
