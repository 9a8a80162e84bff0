#include "transport/wire/http2_settings.h"

#include <cstring>
#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "tests/transport/wire/wire_test_util.h"

namespace penstock {
namespace wire {
namespace {

constexpr char kFrame[] = "000006 04 00 00000000 fe10 5045 0103";

SettingsVerdict Inspect(absl::string_view bytes) {
  VersionRange versions;
  size_t frame_bytes = 0;
  return InspectSettings(bytes, &versions, &frame_bytes);
}

TEST(Http2Settings, PrefaceIsThatOfRfc9113) {
  EXPECT_EQ(strlen(kHttp2Preface), kHttp2PrefaceBytes);
  EXPECT_EQ(ToHex(kHttp2Preface),
            "505249202a20485454502f322e300d0a0d0a534d0d0a0d0a");
}

TEST(Http2Settings, GoldenBytes) {
  EXPECT_EQ(PenstockSettingsFrame({1, 3}), FromHex(kFrame));
  VersionRange versions;
  size_t frame_bytes = 0;
  EXPECT_EQ(InspectSettings(FromHex(kFrame) + "what follows", &versions,
                            &frame_bytes),
            SettingsVerdict::kPenstock);
  EXPECT_EQ(versions.min, 1);
  EXPECT_EQ(versions.max, 3);
  EXPECT_EQ(frame_bytes, 15u);
}

TEST(Http2Settings, CutAnywhereNeedsMore) {
  const std::string bytes = FromHex(kFrame);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(Inspect(bytes.substr(0, size)), SettingsVerdict::kNeedMore);
  }
}

TEST(Http2Settings, FoundAmongOtherSettings) {
  VersionRange versions;
  size_t frame_bytes = 0;
  // Inspects a frame with SETTINGS_ENABLE_PUSH, SETTINGS_MAX_FRAME_SIZE, and
  // gRPC's own 0xfe03.
  EXPECT_EQ(InspectSettings(FromHex("000018 04 00 00000000 0002 00000000"
                                    "0005 00004000 fe10 5045 0101"
                                    "fe03 00000001"),
                            &versions, &frame_bytes),
            SettingsVerdict::kPenstock);
  EXPECT_EQ(versions.max, 1);
  EXPECT_EQ(frame_bytes, 33u);
}

TEST(Http2Settings, StockPeersAreOther) {
  for (absl::string_view hex : {
           "000000 04 00 00000000",                 // no settings
           "000006 04 00 00000000 fe03 0000 0001",  // gRPC's own setting
           "000006 04 00 00000000 fe10 0000 0001",  // without our magic number
           "000000 04 01 00000000",                 // an acknowledgement
           // An acknowledgement with settings.
           "000006 04 01 00000000 fe10 5045 0101",
           "000006 04 00 00000001 fe10 5045 0101",  // settings of a stream
           // A frame whose last setting is cut short.
           "000005 04 00 00000000 fe10 5045 01",
           "000008 06 00 00000000 0000000000000000",  // PING
           "ffffff 04 00 00000000",                   // far too long
           "00025e 04 00 00000000",                   // 101 settings
       }) {
    EXPECT_EQ(Inspect(FromHex(hex)), SettingsVerdict::kOther) << hex;
  }
  EXPECT_EQ(Inspect("HTTP/1.1 400 Bad Request\r\n"), SettingsVerdict::kOther);
}

TEST(Http2Settings, AnotherTypeIsKnownByItsFourthByte) {
  EXPECT_EQ(Inspect(FromHex("000006")), SettingsVerdict::kNeedMore);
  EXPECT_EQ(Inspect(FromHex("000006 07")), SettingsVerdict::kOther);
}

TEST(Http2Settings, DamagedFramesNeverReadBeyondTheirEnd) {
  Mutator random(6);
  for (int i = 0; i < 20000; ++i) {
    const std::string bytes = random.Mutate(FromHex(kFrame));
    VersionRange versions;
    size_t frame_bytes = 0;
    if (InspectSettings(bytes, &versions, &frame_bytes) ==
        SettingsVerdict::kPenstock) {
      EXPECT_LE(frame_bytes, bytes.size());
    }
  }
}

TEST(Http2Settings, EveryRangeSurvives) {
  for (int i = 0; i < 256; ++i) {
    const VersionRange sent = {static_cast<uint8_t>(i),
                               static_cast<uint8_t>(255 - i)};
    VersionRange versions;
    size_t frame_bytes = 0;
    EXPECT_EQ(
        InspectSettings(PenstockSettingsFrame(sent), &versions, &frame_bytes),
        SettingsVerdict::kPenstock);
    EXPECT_EQ(versions.min, sent.min);
    EXPECT_EQ(versions.max, sent.max);
  }
}

TEST(ChooseVersion, TakesTheHighestThatBothKnow) {
  EXPECT_EQ(ChooseVersion({1, 1}, {1, 1}), 1);
  EXPECT_EQ(ChooseVersion({1, 3}, {2, 5}), 3);
  EXPECT_EQ(ChooseVersion({2, 5}, {1, 3}), 3);
  EXPECT_EQ(ChooseVersion({1, 2}, {3, 4}), 0);
  EXPECT_EQ(ChooseVersion({3, 4}, {1, 2}), 0);
  EXPECT_EQ(ChooseVersion({1, 1}, {0, 0}), 0);
  EXPECT_EQ(ChooseVersion({1, 1}, {2, 1}), 0);  // no range at all
}

}  // namespace
}  // namespace wire
}  // namespace penstock
