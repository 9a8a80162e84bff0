// Replays random recordings over a transport and records the replay. Both
// recordings must agree. Also reads files that are no recordings.

#include <sys/wait.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/rpc/recording/recording.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace bench {
namespace {

using ::testing::HasSubstr;

// The messages of a call, and its end.
using Outcome = std::pair<std::vector<std::pair<bool, size_t>>, int>;

std::string PathOf(const std::string& name) {
  return absl::StrCat(testing::TempDir(), "/", name);
}

int RunRpc(const std::string& flags) {
  const std::string command = absl::StrCat("bench/rpc/rpc ", flags);
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void WriteCompressed(const std::string& path, const std::string& text) {
  const gzFile file = gzopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
}

size_t RandomSize(std::mt19937_64* random) {
  // Sizes around the limits of one frame and of announcements.
  constexpr size_t kSizes[] = {0,    1,     7,      8,      100,
                               4096, 65536, 130816, 130817, 1000003};
  return kSizes[(*random)() % std::size(kSizes)];
}

struct Plan {
  std::string text;  // the file
  std::vector<Outcome> outcomes;
  size_t bytes = 0;
};

// Returns overlapping unary calls and streams of several clients.
Plan RandomPlan(uint64_t seed) {
  std::mt19937_64 random(seed);
  Plan plan;
  plan.text = "{\"penstock_recording\":1,\"time\":\"2026-11-23T12:00:00Z\"}\n";
  const size_t calls = 1 + random() % 60;
  const size_t clients = 1 + random() % 4;
  for (size_t id = 1; id <= calls; ++id) {
    Outcome outcome;
    size_t count = 2;
    if (random() % 2 == 0) {
      count = random() % 12;
      outcome.second = random() % 3 == 0 ? static_cast<int>(random() % 17) : 0;
    }
    std::string messages;
    size_t after = 0;
    for (size_t i = 0; i < count; ++i) {
      const bool sent = count == 2 ? i == 1 : random() % 2 == 0;
      const size_t bytes = RandomSize(&random);
      after += random() % 500;
      absl::StrAppend(&messages, i > 0 ? "," : "", "[", after,
                      sent ? ",\">\"," : ",\"<\",", bytes, "]");
      outcome.first.emplace_back(sent, bytes);
      plan.bytes += bytes;
    }
    absl::StrAppend(
        &plan.text, "{\"call\":", id, ",\"client\":", 1 + random() % clients,
        ",\"method\":\"/a.B/C\",\"at\":", random() % 5000, ",\"messages\":[",
        messages, "],\"end\":", after + random() % 100,
        ",\"status\":", outcome.second, "}\n");
    plan.outcomes.push_back(std::move(outcome));
  }
  return plan;
}

std::vector<Outcome> OutcomesOf(const Recording& recording,
                                absl::string_view method) {
  std::vector<Outcome> outcomes;
  for (const RecordedCall& call : recording.calls) {
    if (!absl::StartsWith(call.method, method)) continue;
    Outcome outcome;
    outcome.second = call.status;
    for (const RecordedMessage& message : call.messages) {
      outcome.first.emplace_back(message.sent, message.bytes);
    }
    outcomes.push_back(std::move(outcome));
  }
  std::sort(outcomes.begin(), outcomes.end());
  return outcomes;
}

void ReplayAndCompare(const Plan& plan, const std::string& trace,
                      const std::string& transport, const std::string& flags) {
  const std::string folder = PathOf(absl::StrCat("recorded-", transport));
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const std::string json = PathOf("replay.json");
  ASSERT_EQ(RunRpc(absl::StrCat("--benchmark=replay --rounds=1 --trace=", trace,
                                " --transports=", transport, " --json=", json,
                                " --record=", folder, "/%p ", flags,
                                " >/dev/null 2>&1")),
            0);
  std::ifstream in(json);
  const auto cells = nlohmann::json::parse(in, nullptr, false);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_EQ(cells[0]["bytes"], plan.bytes);
  EXPECT_EQ(cells[0]["rpcs"], plan.outcomes.size());
  // Checks the server's own recording, which has each call twice, because of
  // the warm-up.
  const auto file = std::filesystem::directory_iterator(folder);
  ASSERT_NE(file, std::filesystem::directory_iterator());
  const auto recorded = LoadRecording(file->path().string());
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(recorded->left_out, 0u);
  EXPECT_EQ(recorded->unfinished, 0u);
  std::vector<Outcome> expected = plan.outcomes;
  expected.insert(expected.end(), plan.outcomes.begin(), plan.outcomes.end());
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(OutcomesOf(*recorded, "/penstock.bench.Rpc/Replay"), expected);
}

TEST(ReplayTest, WhatIsReplayedIsWhatWasRecorded) {
  uint64_t first = std::random_device()();
  if (const char* seed = std::getenv("SEED")) first = std::stoull(seed);
  for (uint64_t seed = first; seed < first + 3; ++seed) {
    SCOPED_TRACE(absl::StrCat("repeat with --test_env=SEED=", seed));
    std::cout << "seed " << seed << std::endl;
    const Plan plan = RandomPlan(seed);
    const std::string trace = PathOf("plan.gz");
    WriteCompressed(trace, plan.text);
    const auto loaded = LoadRecording(trace);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->bytes, plan.bytes);
    EXPECT_EQ(loaded->calls.size(), plan.outcomes.size());
    for (const char* transport : {"tcp", "penstock-tcp", "shm"}) {
      SCOPED_TRACE(transport);
      ReplayAndCompare(plan, trace, transport, "");
    }
    ReplayAndCompare(plan, trace, "shm", "--speed=1");
  }
}

constexpr char kHeader[] = "{\"penstock_recording\":1}\n";

std::string CallAt(size_t id, size_t at, size_t end) {
  return absl::StrCat("{\"call\":", id, ",\"client\":1,\"method\":\"/a/b\",",
                      "\"at\":", at, ",\"messages\":[[0,\"<\",8],[", end,
                      ",\">\",8]],\"end\":", end, ",\"status\":0}\n");
}

TEST(ReplayTest, BySpeedItTakesItsTime) {
  const std::string trace = PathOf("slow");
  WriteCompressed(trace, absl::StrCat(kHeader, CallAt(1, 0, 10),
                                      CallAt(2, 600 * 1000, 10)));
  const std::string json = PathOf("slow.json");
  const auto seconds = [&](const std::string& speed) {
    EXPECT_EQ(
        RunRpc(absl::StrCat("--benchmark=replay --rounds=1 --transports=tcp "
                            "--trace=",
                            trace, " --json=", json, " --speed=", speed,
                            " >/dev/null 2>&1")),
        0);
    std::ifstream in(json);
    return nlohmann::json::parse(in)[0]["seconds"].get<double>();
  };
  EXPECT_GE(seconds("1"), 0.6);
  const double twice = seconds("2");
  EXPECT_GE(twice, 0.3);
  EXPECT_LT(twice, 0.6);
  EXPECT_LT(seconds("max"), 0.3);
}

TEST(RecordingTest, OverlapIsCounted) {
  const std::string path = PathOf("overlap");
  WriteCompressed(path,
                  absl::StrCat(kHeader, CallAt(1, 0, 100), CallAt(2, 50, 100),
                               CallAt(3, 100, 10), CallAt(4, 200, 10)));
  const auto recording = LoadRecording(path);
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_EQ(MostOpen(*recording, recording->CallsOf(0)), 2u);
}

TEST(RecordingTest, ThoseThatShipAreWhole) {
  struct {
    const char* name;
    size_t clients;
    size_t calls;
  } const kShipped[] = {{"digits", 2, 6006}, {"tensorflow_resnet50", 2, 5076}};
  for (const auto& shipped : kShipped) {
    const std::string path =
        absl::StrCat("bench/rpc/traces/", shipped.name, ".gz");
    const auto recording = LoadRecording(path);
    ASSERT_TRUE(recording.ok()) << recording.status();
    EXPECT_EQ(recording->clients, shipped.clients) << path;
    EXPECT_EQ(recording->calls.size(), shipped.calls) << path;
    EXPECT_EQ(recording->left_out, 0u) << path;
    EXPECT_EQ(recording->unfinished, 0u) << path;
    EXPECT_LT(std::filesystem::file_size(path), 200u * 1000);
  }
}

std::string ErrorOf(const std::string& text) {
  const std::string path = PathOf("wrong");
  WriteCompressed(path, text);
  return std::string(LoadRecording(path).status().message());
}

TEST(RecordingTest, WhatIsWrongIsNamed) {
  const std::string call = CallAt(1, 0, 1);
  const auto with = [](const std::string& line) {
    return ErrorOf(absl::StrCat(kHeader, line, "\n"));
  };
  EXPECT_THAT(ErrorOf(""), HasSubstr("it is empty"));
  EXPECT_THAT(ErrorOf(kHeader), HasSubstr("it has no calls"));
  EXPECT_THAT(ErrorOf("hello\n"), HasSubstr("line 1: it is no JSON object"));
  EXPECT_THAT(ErrorOf("{\"a\":1}\n"), HasSubstr("no recording of Penstock"));
  EXPECT_THAT(ErrorOf("{\"penstock_recording\":2}\n"),
              HasSubstr("version 2, and this program reads 1; take a newer"));
  EXPECT_THAT(ErrorOf(kHeader + call.substr(0, call.size() - 1)),
              HasSubstr("line 2: it is too long, or does not end"));
  EXPECT_THAT(ErrorOf(absl::StrCat(kHeader, std::string(1 << 20, ' '), "\n")),
              HasSubstr("line 2: it is too long"));
  EXPECT_THAT(with("[]"), HasSubstr("line 2: it is no JSON object"));
  EXPECT_THAT(with("{\"call\":1,\"messages\":[]}"), HasSubstr("has not begun"));
  EXPECT_THAT(with("{\"call\":-1}"), HasSubstr("\"call\" is -1, and not"));
  EXPECT_THAT(with("{\"call\":1,\"client\":1,\"at\":0,\"messages\":[]}"),
              HasSubstr("\"method\" is missing"));
  const std::string begin =
      "{\"call\":1,\"client\":1,\"method\":\"/a\",\"at\":0";
  EXPECT_THAT(with(begin + "}"), HasSubstr("\"messages\" is missing"));
  const auto with_message = [&](const std::string& message) {
    return with(absl::StrCat(begin, ",\"messages\":[", message, "]}"));
  };
  EXPECT_THAT(with_message("[1,\"<\"]"), HasSubstr("a message is not"));
  EXPECT_THAT(with_message("[1,\"=\",1]"), HasSubstr("a message is not"));
  EXPECT_THAT(with_message("[1,\"<\",-1]"), HasSubstr("\"messages\" is -1"));
  EXPECT_THAT(with_message("[1,\"<\",1073741825]"), HasSubstr("1073741824"));
  EXPECT_THAT(with_message("[1,\"<\",99999999999999999999]"),
              HasSubstr("whole number"));
  EXPECT_THAT(with_message("[18446744073709551615,\"<\",1]"),
              HasSubstr("whole number"));
  EXPECT_THAT(with_message("[1.5,\"<\",1]"), HasSubstr("whole number"));
  EXPECT_THAT(with_message("[2,\"<\",1],[1,\"<\",1]"),
              HasSubstr("before the last one"));
  EXPECT_THAT(
      with(begin + ",\"messages\":[[5,\"<\",1]],\"end\":4,\"status\":0}"),
      HasSubstr("ends before its last message"));
  EXPECT_THAT(with(begin + ",\"messages\":[],\"end\":4,\"status\":17}"),
              HasSubstr("\"status\" is 17"));
}

TEST(RecordingTest, WhatCannotBeReplayedIsRefused) {
  std::string many_open = kHeader;
  for (size_t i = 1; i <= 600; ++i) many_open += CallAt(i, 0, 10);
  EXPECT_THAT(ErrorOf(many_open), HasSubstr("600 calls open at once"));
}

TEST(RecordingTest, AFileThatIsCutOffIsRefused) {
  const std::string path = PathOf("cut");
  std::string text = kHeader;
  for (size_t i = 1; i < 100; ++i) text += CallAt(i, i * i, 10);
  WriteCompressed(path, text);
  const auto size = std::filesystem::file_size(path);
  for (const auto rest : {size - 1, size - 8, size / 2, size / 4}) {
    std::filesystem::resize_file(path, rest);
    const absl::Status status = LoadRecording(path).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("cut off")) << rest;
  }
}

TEST(RecordingTest, MutationsEndInAStatus) {
  uint64_t seed = std::random_device()();
  if (const char* given = std::getenv("SEED")) seed = std::stoull(given);
  std::cout << "seed " << seed << std::endl;
  std::mt19937_64 random(seed);
  const std::string text = RandomPlan(seed).text;
  const std::string path = PathOf("mutated");
  size_t refused = 0;
  constexpr size_t kMutations = 3000;
  for (size_t i = 0; i < kMutations; ++i) {
    std::string mutated = text;
    for (size_t j = 1 + random() % 4; j > 0; --j) {
      const size_t at = random() % mutated.size();
      switch (random() % 4) {
        case 0:
          mutated[at] = static_cast<char>(random());
          break;
        case 1:
          mutated.erase(at, random() % 20);
          break;
        case 2:
          mutated.insert(at, mutated.substr(random() % mutated.size(), 20));
          break;
        default:
          mutated.insert(at, "0123456789-.,[]{}\"<>\n" + random() % 21, 1);
      }
      if (mutated.empty()) mutated = "x";
    }
    // Zlib also reads uncompressed files.
    std::ofstream(path, std::ios::binary) << mutated;
    const auto recording = LoadRecording(path);
    if (!recording.ok()) {
      ++refused;
      EXPECT_THAT(std::string(recording.status().message()), HasSubstr(path));
    } else {
      EXPECT_FALSE(recording->calls.empty());
    }
  }
  EXPECT_GT(refused, kMutations / 2);
  EXPECT_LT(refused, kMutations);
}

TEST(RecordingTest, DamagedCompressionIsRefused) {
  const std::string path = PathOf("damaged");
  WriteCompressed(path, RandomPlan(1).text);
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  std::mt19937_64 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = whole;
    // Damages bytes after the header, part of which is unused.
    damaged[10 + random() % (damaged.size() - 10)] ^=
        static_cast<char>(1 + random() % 255);
    std::ofstream(path, std::ios::binary) << damaged;
    EXPECT_FALSE(LoadRecording(path).ok()) << i;
  }
}

TEST(ReplayTest, WrongFlagsAreNamed) {
  const std::string trace = PathOf("flags");
  WriteCompressed(trace, kHeader + CallAt(1, 0, 1));
  for (const std::string& flags :
       {std::string("--benchmark=replay"), "--trace=" + trace,
        std::string("--benchmark=replay --trace=/no/such/file"),
        "--benchmark=replay --speed=0 --trace=" + trace,
        "--benchmark=replay --speed=fast --trace=" + trace,
        "--benchmark=replay --sizes=8 --trace=" + trace,
        "--benchmark=replay --api=async --trace=" + trace,
        "--benchmark=replay,latency --trace=" + trace}) {
    EXPECT_EQ(RunRpc(flags + " >/dev/null 2>&1"), 2) << flags;
  }
}

}  // namespace
}  // namespace bench
}  // namespace penstock
