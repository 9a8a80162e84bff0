// Encodes and parses the part of HTTP/2 that negotiation needs: the client's
// preface and one SETTINGS frame with a private setting (RFC 9113, sections 3.4
// and 6.5).

#ifndef PENSTOCK_TRANSPORT_WIRE_HTTP2_SETTINGS_H_
#define PENSTOCK_TRANSPORT_WIRE_HTTP2_SETTINGS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock {
namespace wire {

// "PRI * HTTP/2.0...": the first 24 bytes that an HTTP/2 client sends.
extern const char kHttp2Preface[];
constexpr size_t kHttp2PrefaceBytes = 24;

// The identifier of the private setting. Peers must ignore settings that they
// do not know. The high 16 bits of the value must be kNegotiationMagic;
// otherwise another project uses the same identifier. The low 16 bits are the
// lowest and the highest protocol version, a byte each.
constexpr uint16_t kPenstockSetting = 0xfe10;
constexpr uint32_t kNegotiationMagic = 0x5045;  // "PE"

struct VersionRange {
  uint8_t min = 0;
  uint8_t max = 0;
};

// Returns the highest version that is in both ranges, or 0 if there is none.
uint8_t ChooseVersion(VersionRange mine, VersionRange peer);

// Returns a SETTINGS frame with only the private setting. A client sends its
// range of versions, a server the one version that it has chosen.
std::string PenstockSettingsFrame(VersionRange versions);

enum class SettingsVerdict {
  kNeedMore,  // undecided: call again with more bytes
  kPenstock,  // a SETTINGS frame with the private setting
  kOther,     // anything else
};

// Looks for the private setting in the frame at the start of `bytes`. For
// kPenstock, sets `*versions` to the setting's value and `*frame_bytes` to the
// length of the frame.
SettingsVerdict InspectSettings(absl::string_view bytes, VersionRange* versions,
                                size_t* frame_bytes);

}  // namespace wire
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_WIRE_HTTP2_SETTINGS_H_
