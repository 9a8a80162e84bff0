#include "transport/wire/settings_ack_filter.h"

#include <string>

#include "gtest/gtest.h"

namespace penstock {
namespace wire {
namespace {

std::string Frame(char type, char flags, const std::string& payload) {
  std::string frame(3, '\0');
  frame[1] = static_cast<char>(payload.size() >> 8);
  frame[2] = static_cast<char>(payload.size());
  frame += type;
  frame += flags;
  frame.append(4, '\0');
  return frame + payload;
}

std::string Settings() { return Frame(4, 0, std::string(12, 'x')); }
std::string Ack() { return Frame(4, 1, ""); }
std::string Ping(char flags) { return Frame(6, flags, "12345678"); }
// Returns a data frame whose payload looks like an acknowledgement.
std::string Data() { return Frame(0, 0, Ack() + std::string(300, 'd')); }

TEST(SettingsAckFilter, FirstAckIsDroppedAndTheSecondPassed) {
  SettingsAckFilter filter;
  EXPECT_EQ(filter.Pass(Settings() + Ack() + Data() + Ack()),
            Settings() + Data() + Ack());
  EXPECT_TRUE(filter.done());
}

TEST(SettingsAckFilter, WhatIsNoSettingsAckPasses) {
  SettingsAckFilter filter;
  const std::string frames = Settings() + Ping(1) + Data();
  EXPECT_EQ(filter.Pass(frames), frames);
  EXPECT_FALSE(filter.done());
}

TEST(SettingsAckFilter, AckWithAPayloadIsForGrpcToRefuse) {
  SettingsAckFilter filter;
  const std::string wrong = Frame(4, 1, "abcdef");
  EXPECT_EQ(filter.Pass(wrong), wrong);
  EXPECT_FALSE(filter.done());
}

TEST(SettingsAckFilter, EveryCutGivesTheSame) {
  const std::string before = Settings() + Data() + Ack() + Ping(0);
  const std::string after = Settings() + Data() + Ping(0);
  for (size_t cut = 0; cut <= before.size(); ++cut) {
    SettingsAckFilter filter;
    std::string out = filter.Pass(before.substr(0, cut));
    out += filter.Pass(before.substr(cut));
    EXPECT_EQ(out, after) << "cut at " << cut;
  }
}

TEST(SettingsAckFilter, ByteByByteGivesTheSame) {
  SettingsAckFilter filter;
  std::string out;
  for (char byte : Settings() + Ack() + Settings()) {
    out += filter.Pass(std::string(1, byte));
  }
  EXPECT_EQ(out, Settings() + Settings());
}

}  // namespace
}  // namespace wire
}  // namespace penstock
