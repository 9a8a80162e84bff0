// Tests recordings above the limits of a replay.

#include <zlib.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/rpc/recording/recording.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace bench {
namespace {

using ::testing::HasSubstr;

constexpr char kHeader[] = "{\"penstock_recording\":1}\n";

std::string PathOf(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "/", name);
}

void WriteCompressed(const std::string& path, const std::string& text) {
  const gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

std::string CallAt(size_t id, size_t client, size_t at) {
  return absl::StrCat("{\"call\":", id, ",\"client\":", client,
                      ",\"method\":\"/a\",\"at\":", at,
                      ",\"messages\":[[0,\"<\",8],[0,\">\",8]],\"end\":0,"
                      "\"status\":0}\n");
}

// Tests the calls of a server that runs for days with short-lived clients.
TEST(RecordingLimitsTest, ManyClientsShareConnections) {
  const std::string path = PathOf("clients");
  std::string text = kHeader;
  constexpr size_t kClients = 600;
  for (size_t i = 1; i <= kClients; ++i) {
    text += CallAt(i, 7 * i, i);
  }
  WriteCompressed(path, text);
  const auto recording = LoadRecording(path);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(recording->recorded_clients, kClients);
  ASSERT_EQ(recording->clients, Recording::kMaxClients);
  EXPECT_EQ(recording->CallsOf(0), (std::vector<size_t>{0, 256, 512}));
  EXPECT_EQ(recording->CallsOf(255), (std::vector<size_t>{255, 511}));
  const std::string said = PathOf("clients.said");
  const std::string command = absl::StrCat(
      "bench/rpc/rpc --benchmark=replay --rounds=1 --transports=tcp --trace=",
      path, " >/dev/null 2>", said);
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ifstream in(said);
  const std::string line((std::istreambuf_iterator<char>(in)), {});
  EXPECT_THAT(line, HasSubstr("600 clients share 256 connections"));
}

TEST(RecordingLimitsTest, WhatIsTooMuchIsLeftOut) {
  const std::string path = PathOf("much");
  std::string text = kHeader;
  constexpr size_t kCalls = 100;
  for (size_t i = 1; i <= kCalls; ++i) text += CallAt(i, 1, i);
  WriteCompressed(path, text);
  const auto calls_within = [&path](const RecordingLimits& limits) {
    const auto recording = LoadRecording(path, limits);
    EXPECT_TRUE(recording.ok()) << recording.status();
    if (!recording.ok()) return size_t{0};
    EXPECT_EQ(recording->goes_on, recording->calls.size() < kCalls);
    EXPECT_EQ(recording->messages, 2 * recording->calls.size());
    EXPECT_EQ(recording->unfinished, 0u);
    return recording->calls.size();
  };
  RecordingLimits limits;
  EXPECT_EQ(calls_within(limits), kCalls);
  limits.calls = kCalls;
  EXPECT_EQ(calls_within(limits), kCalls);
  limits.calls = 10;
  EXPECT_EQ(calls_within(limits), 10u);
  limits = RecordingLimits();
  limits.messages = 41;
  EXPECT_EQ(calls_within(limits), 20u);
  limits = RecordingLimits();
  limits.file_bytes = text.size() / 2;
  EXPECT_NEAR(static_cast<double>(calls_within(limits)), kCalls / 2, 2);
}

TEST(RecordingLimitsTest, ACallThatIsCutByALimitIsUnfinished) {
  const std::string path = PathOf("half");
  WriteCompressed(
      path, absl::StrCat(kHeader,
                         "{\"call\":1,\"client\":1,\"method\":\"/a\",\"at\":0,"
                         "\"messages\":[[5,\"<\",1]]}\n",
                         CallAt(2, 1, 0),
                         "{\"call\":1,\"messages\":[[6,\"<\",1]],\"end\":7,"
                         "\"status\":3}\n"));
  RecordingLimits limits;
  limits.messages = 3;
  const auto recording = LoadRecording(path, limits);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_TRUE(recording->goes_on);
  EXPECT_EQ(recording->calls.size(), 2u);
  EXPECT_EQ(recording->unfinished, 1u);
}

}  // namespace
}  // namespace bench
}  // namespace penstock
