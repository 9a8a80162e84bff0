// The part of HTTP/2 that negotiation needs: the client's preface and one
// SETTINGS frame with a private setting (RFC 9113, sections 3.4 and 6.5).

#ifndef PENSTOCK_TRANSPORT_WIRE_HTTP2_SETTINGS_H_
#define PENSTOCK_TRANSPORT_WIRE_HTTP2_SETTINGS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock {
namespace wire {

// "PRI * HTTP/2.0...": the 24 bytes with which an HTTP/2 client begins.
extern const char kHttp2Preface[];
constexpr size_t kHttp2PrefaceBytes = 24;

// From the range that peers must ignore if they do not know it. Its value is
// kNegotiationMagic in the high 16 bits (any other is somebody else's setting),
// then the lowest and the highest protocol version, a byte each.
constexpr uint16_t kPenstockSetting = 0xfe10;
constexpr uint32_t kNegotiationMagic = 0x5045;  // "PE"

struct VersionRange {
  uint8_t min = 0;
  uint8_t max = 0;
};

// The highest version that both ranges hold, or 0 if there is none.
uint8_t ChooseVersion(VersionRange mine, VersionRange peer);

// A SETTINGS frame that carries the private setting and nothing else. A client
// sends its range, a server the one version that it chose.
std::string PenstockSettingsFrame(VersionRange versions);

enum class SettingsVerdict {
  kNeedMore,  // cut short: more bytes decide
  kPenstock,  // a SETTINGS frame with the private setting
  kOther,     // anything else
};

// Looks at the frame with which `bytes` begins. For kPenstock, `*versions` is
// the setting's value and `*frame_bytes` the frame's length.
SettingsVerdict InspectSettings(absl::string_view bytes, VersionRange* versions,
                                size_t* frame_bytes);

}  // namespace wire
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_WIRE_HTTP2_SETTINGS_H_
