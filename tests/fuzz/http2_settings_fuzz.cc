// Tests wire::InspectSettings and ChooseVersion.

#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "transport/wire/http2_settings.h"

namespace penstock {
namespace fuzz {
namespace {

using wire::SettingsVerdict;

struct Inspection {
  SettingsVerdict verdict;
  wire::VersionRange versions;
  size_t frame_bytes = 0;
};

Inspection Inspect(absl::string_view bytes) {
  Inspection result;
  result.verdict =
      wire::InspectSettings(bytes, &result.versions, &result.frame_bytes);
  return result;
}

bool Same(const Inspection& a, const Inspection& b) {
  return a.verdict == b.verdict && a.versions.min == b.versions.min &&
         a.versions.max == b.versions.max && a.frame_bytes == b.frame_bytes;
}

// Checks that further bytes change no verdict except "need more".
void CheckPrefixes(absl::string_view bytes, const Inspection& whole) {
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Inspection part = Inspect(bytes.substr(0, size));
    Require(part.verdict == SettingsVerdict::kNeedMore || Same(part, whole),
            "a verdict stands");
  }
}

void CheckVersions(wire::VersionRange peer) {
  const wire::VersionRange mine = {1, 3};
  const uint8_t chosen = wire::ChooseVersion(mine, peer);
  Require(chosen == 0 || (chosen >= peer.min && chosen <= peer.max &&
                          chosen >= mine.min && chosen <= mine.max),
          "the chosen version is in both ranges");
  const std::string frame = wire::PenstockSettingsFrame(peer);
  const Inspection again = Inspect(frame);
  Require(again.verdict == SettingsVerdict::kPenstock &&
              again.frame_bytes == frame.size() &&
              again.versions.min == peer.min && again.versions.max == peer.max,
          "our own frame is understood");
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string ours = wire::PenstockSettingsFrame({1, 1});
  // Adds seeds: INITIAL_WINDOW_SIZE before the setting, a frame without
  // settings, and an ACK.
  const std::string two("\0\0\x0c\4\0\0\0\0\0\0\4\0\1\0\0\xfe\x10PE\1\2", 21);
  const std::string none("\0\0\0\4\0\0\0\0\0", 9);
  const std::string ack("\0\0\0\4\1\0\0\0\0", 9);
  return {ours, two, none, ack, ours + two};
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock::fuzz;
  // Uses only the beginning of a frame, which determines the verdict.
  const absl::string_view bytes = AsText({data, size}).substr(0, 700);
  const Inspection whole = Inspect(bytes);
  CheckPrefixes(bytes, whole);
  if (whole.verdict == SettingsVerdict::kPenstock) {
    Require(whole.frame_bytes <= bytes.size(), "the frame is there");
    CheckVersions(whole.versions);
  }
  return 0;
}
