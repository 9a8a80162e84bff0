#include "transport/monitoring/connection_json.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "transport/metrics/histogram.h"
#include "transport/metrics/labels.h"

namespace penstock {
namespace monitoring {
namespace {

using metrics::ConnectionInfo;
using metrics::Histogram;

// Returns an object in which each field has a different value.
ConnectionInfo Full() {
  ConnectionInfo info;
  info.role = metrics::Role::kServer;
  info.peer = "ipv4:127.0.0.1:1";
  info.path = "shm";
  info.detail = "ring 256 KiB";
  info.reason = "none \"better\"";
  uint64_t next = uint64_t{1} << 60;  // larger than the integers of a double
  for (uint64_t* each :
       {&info.id, &info.eager_max_bytes, &info.chunk_bytes, &info.messages_sent,
        &info.messages_received, &info.bytes_sent, &info.bytes_received,
        &info.announced_unreleased, &info.streams_started, &info.streams_reset,
        &info.streams, &info.paths_lost, &info.paths_regained,
        &info.credit_stalls, &info.credit_stall_ns, &info.window_stalls}) {
    *each = ++next;
  }
  for (auto& of_kind : info.traffic) {
    for (ConnectionInfo::Traffic& traffic : of_kind) {
      traffic.messages = ++next;
      traffic.bytes = ++next;
    }
  }
  for (const uint64_t ns : {1, 5000, 2000000000}) {
    info.client_streams.Record(ns);
    info.announced.Record(7 * ns);
  }
  info.announced.Record(uint64_t{1} << 40);
  return info;
}

ConnectionInfo Parsed(const std::string& line) {
  const auto parsed = FromJson(line);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() && parsed->size() == 1 ? parsed->front()
                                            : ConnectionInfo();
}

void ExpectEqual(const Histogram& left, const Histogram& right) {
  EXPECT_EQ(left.sum_ns(), right.sum_ns());
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    EXPECT_EQ(left.bucket(i), right.bucket(i)) << i;
  }
}

TEST(ConnectionJsonTest, WhatIsWrittenIsReadBack) {
  const ConnectionInfo full = Full();
  const std::string lines = ToJson({full, ConnectionInfo()});
  const auto parsed = FromJson(lines);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->size(), 2u);
  const ConnectionInfo& read = parsed->front();
  // Checks all numbers by comparing the text.
  EXPECT_EQ(ToJson(*parsed), lines);
  EXPECT_EQ(read.role, full.role);
  EXPECT_EQ(read.peer, full.peer);
  EXPECT_EQ(read.path, full.path);
  EXPECT_EQ(read.detail, full.detail);
  EXPECT_EQ(read.reason, full.reason);
  EXPECT_EQ(read.id, full.id);
  EXPECT_EQ(read.window_stalls, full.window_stalls);
  EXPECT_EQ(read.traffic[1][0].bytes, full.traffic[1][0].bytes);
  ExpectEqual(read.client_streams, full.client_streams);
  ExpectEqual(read.announced, full.announced);
}

TEST(ConnectionJsonTest, FieldsHaveTheNamesThatProgramsRead) {
  const ConnectionInfo full = Full();
  const std::string line = ToJson({full});
  for (const auto& [name, value] :
       std::vector<std::pair<std::string, uint64_t>>{
           {"id", full.id},
           {"eager_max_bytes", full.eager_max_bytes},
           {"chunk_bytes", full.chunk_bytes},
           {"messages_sent", full.messages_sent},
           {"messages_received", full.messages_received},
           {"bytes_sent", full.bytes_sent},
           {"bytes_received", full.bytes_received},
           {"streams", full.streams},
           {"credit_stalls", full.credit_stalls},
           {"credit_stall_ns", full.credit_stall_ns},
           {"eager_messages_sent", full.traffic[0][0].messages},
           {"eager_bytes_received", full.traffic[0][1].bytes},
           {"announced_messages_received", full.traffic[1][1].messages}}) {
    EXPECT_NE(line.find(absl::StrCat("\"", name, "\":", value)),
              std::string::npos)
        << name;
  }
  for (const char* part :
       {R"("role":"server")", R"("peer":"ipv4:)", R"("path":"shm")",
        R"("detail":"ring)", R"("client_streams":{"buckets":[1,)"}) {
    EXPECT_NE(line.find(part), std::string::npos) << part << line;
  }
}

TEST(ConnectionJsonTest, EveryFieldIsWritten) {
  const std::string line = ToJson({Full()});
  // Expects each number once, because Full() gives each field its own number.
  // The number of fields is the limit.
  for (int i = 1; i <= 16 + 2 * metrics::kKinds * metrics::kDirections; ++i) {
    const std::string number = absl::StrCat((uint64_t{1} << 60) + i);
    EXPECT_NE(line.find(number), std::string::npos) << number;
  }
}

TEST(ConnectionJsonTest, TextsOfAPeerStayPrintable) {
  ConnectionInfo info;
  info.peer = "\x1b[31m\n\xff{}\"";
  const std::string line = ToJson({info});
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  for (const char c : line.substr(0, line.size() - 1)) {
    EXPECT_TRUE(c >= ' ' && c < 127) << static_cast<int>(c);
  }
  // Expects that the byte that is not UTF-8 is replaced.
  EXPECT_EQ(Parsed(line).peer, "\x1b[31m\n\xef\xbf\xbd{}\"");
}

TEST(ConnectionJsonTest, WhatIsMissingOrOfAnotherTypeIsZero) {
  const ConnectionInfo info = Parsed(
      R"({"role":"client","peer":7,"messages_sent":7,"streams":-1,"id":1.5,)"
      R"("bytes_sent":"x","chunk_bytes":99999999999999999999,"of_later":[1],)"
      R"("client_streams":{"buckets":7},"announced":[]})");
  EXPECT_EQ(info.messages_sent, 7u);
  EXPECT_EQ(info.peer, "");
  for (const uint64_t number :
       {info.streams, info.id, info.bytes_sent, info.chunk_bytes}) {
    EXPECT_EQ(number, 0u);
  }
  ExpectEqual(info.client_streams, Histogram());
  ExpectEqual(info.announced, Histogram());
}

TEST(ConnectionJsonTest, AHistogramWithOtherBucketsIsLeftOut) {
  std::string ones = "1";
  for (int count = 1; count < 2 * Histogram::kBuckets; ++count) {
    const auto info = Parsed(absl::StrCat(
        R"({"role":"client","client_streams":{"sum_ns":9,"buckets":[)", ones,
        "]}}"));
    const bool is_ours = count == Histogram::kBuckets;
    EXPECT_EQ(info.client_streams.sum_ns(), is_ours ? 9u : 0u) << count;
    EXPECT_EQ(info.client_streams.bucket(0), is_ours ? 1u : 0u) << count;
    ones += ",1";
  }
}

TEST(ConnectionJsonTest, WhatIsNoConnectionIsRefused) {
  for (const char* text :
       {"{", "[]", "7", "null", "\xff", "{}", R"({"role":"other"})",
        R"({"role":7})", "{\"role\":\"client\"}\nx"}) {
    EXPECT_EQ(FromJson(text).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_TRUE(FromJson("").ok());
  EXPECT_FALSE(FromJson(std::string(1'000'000, '[')).ok());
  EXPECT_FALSE(FromJson(absl::StrReplaceAll(std::string(100'000, 'x'),
                                            {{"x", "{\"a\":"}}))
                   .ok());
}

TEST(ConnectionJsonTest, AnyPartAndAnyWrongByteIsAnAnswerOrAnError) {
  const std::string line = ToJson({Full()});
  for (size_t i = 0; i < line.size(); ++i) {
    (void)FromJson(line.substr(0, i));
    for (const char c : {'\0', '"', '{', '-', '9', '\xff'}) {
      std::string wrong = line;
      wrong[i] = c;
      (void)FromJson(wrong);
    }
  }
}

}  // namespace
}  // namespace monitoring
}  // namespace penstock
