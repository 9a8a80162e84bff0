// Tests the benchmark program: processes, transports, APIs and exit codes.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace {

// Returns the exit code of bench/rpc with these flags. Discards the table
// unless `flags` redirect it.
int RunRpc(const std::string& flags) {
  const std::string command = "bench/rpc/rpc " + flags;
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

nlohmann::json ReadJson(const std::string& path) {
  std::ifstream in(path);
  return nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
}

TEST(RpcTest, MeasuresEveryStockCell) {
  const std::string path = testing::TempDir() + "/stock.json";
  ASSERT_EQ(
      RunRpc("--transports=tcp,uds,inproc --rounds=2 --rpcs=5 --threads=2 "
             "--window=2 --benchmark=latency,bandwidth,stream "
             "--sizes=8,100003 --json=" +
             path + " > /dev/null"),
      0);
  const nlohmann::json cells = ReadJson(path);
  ASSERT_TRUE(cells.is_array());
  EXPECT_EQ(cells.size(), 3u * 3 * 3 * 2);
  std::set<std::string> names;
  for (const auto& cell : cells) {
    EXPECT_EQ(cell["rpcs"], 5) << cell;
    EXPECT_GT(cell["p50_us"], 0) << cell;
    EXPECT_GE(cell["p99_us"], cell["p50_us"]) << cell;
    EXPECT_GT(cell["mb_per_s"], 0) << cell;
    names.insert(cell["benchmark"].get<std::string>() + " " +
                 cell["transport"].get<std::string>() + " " +
                 cell["api"].get<std::string>() + " " +
                 std::to_string(cell["bytes"].get<int>()));
  }
  EXPECT_EQ(names.size(), cells.size());
}

TEST(RpcTest, MessagesOfEveryFormAreAnswered) {
  for (const char* form : {"protobuf", "tensor"}) {
    EXPECT_EQ(RunRpc(std::string("--message=") + form +
                     " --transports=tcp,shm --rounds=1 --rpcs=3 "
                     "--benchmark=latency,bandwidth,beside "
                     "--sizes=8,100003,3MiB > /dev/null 2>&1"),
              0)
        << form;
  }
}

TEST(RpcTest, MessagesOfManyBuffersAreAnsweredInEveryForm) {
  // Covers each form and each scheme once.
  const std::pair<const char*, const char*> kCases[] = {
      {"raw", "uniform"},
      {"raw", "random"},
      {"protobuf", "skew"},
      {"tensor", "equal"},
  };
  for (const auto& [form, scheme] : kCases) {
    EXPECT_EQ(RunRpc(std::string("--message=") + form + " --scheme=" + scheme +
                     " --buffers=7 --sizes=10,1003,100001 "
                     "--transports=tcp,shm --rounds=1 --rpcs=3 "
                     "--benchmark=latency,push > /dev/null 2>&1"),
              0)
        << form << " " << scheme;
  }
}

// Tests a machine without a GPU. Nothing may replace the GPU, and no output may
// look like a GPU's figures.
TEST(RpcTest, WithoutADeviceItsMemoryIsNotMeasured) {
  if (access("/dev/nvidiactl", F_OK) == 0) GTEST_SKIP() << "there is a GPU";
  const std::string path = testing::TempDir() + "/device";
  EXPECT_EQ(
      RunRpc("--memory=device --quick > " + path + " 2> " + path + ".error"),
      1);
  const auto contents = [](const std::string& file) {
    std::ostringstream out;
    out << std::ifstream(file).rdbuf();
    return out.str();
  };
  EXPECT_EQ(contents(path), "");
  EXPECT_NE(contents(path + ".error").find("without --memory=device"),
            std::string::npos)
      << contents(path + ".error");
}

// Tests that pairs with TLS, and pairs with one stock side, are measured. A
// mixed pair that spoke Penstock's frames, or no HTTP/2, would be reported as
// unavailable.
TEST(RpcTest, EncryptedAndMixedPairsAreMeasured) {
  const std::string path = testing::TempDir() + "/pairs.json";
  ASSERT_EQ(RunRpc("--benchmark=latency,ps-throughput --rounds=1 --rpcs=3 "
                   "--transports=tls,penstock-tls,shm-tls,penstock-client,"
                   "penstock-server --sizes=8,1MiB --json=" +
                   path + " > /dev/null 2>&1"),
            0);
  EXPECT_EQ(ReadJson(path).size(), 2u * 5 * 3 * 2);
}

TEST(RpcTest, ManyClientsSendToManyServers) {
  const std::string path = testing::TempDir() + "/servers.json";
  ASSERT_EQ(RunRpc("--benchmark=ps-throughput --transports=tcp,shm --rounds=1 "
                   "--servers=2 --workers=3 --rpcs=5 --api=async,callback "
                   "--sizes=8,100003 --json=" +
                   path + " > /dev/null 2>&1"),
            0);
  const nlohmann::json cells = ReadJson(path);
  ASSERT_EQ(cells.size(), 2u * 2 * 2);
  for (const auto& cell : cells) {
    EXPECT_EQ(cell["rpcs"], 3 * 5) << cell;
    EXPECT_GT(cell["mb_per_s"], 0) << cell;
    EXPECT_GT(cell["cpu_s_per_million"], 0) << cell;
  }
}

TEST(RpcTest, NumbersOfClientsAreACurve) {
  const std::string path = testing::TempDir() + "/curve.json";
  ASSERT_EQ(RunRpc("--benchmark=ps-throughput --transports=tcp --rounds=1 "
                   "--servers=1 --workers=1,3 --rpcs=5 --api=sync --sizes=8 "
                   "--json=" +
                   path + " > /dev/null 2>&1"),
            0);
  const nlohmann::json cells = ReadJson(path);
  ASSERT_EQ(cells.size(), 2u);
  for (size_t i = 0; i < cells.size(); ++i) {
    EXPECT_EQ(cells[i]["clients"], i == 0 ? 1 : 3);
    EXPECT_EQ(cells[i]["rpcs"], 5 * cells[i]["clients"].get<int>());
    EXPECT_NEAR(cells[i]["calls_per_s"].get<double>(),
                cells[i]["mb_per_s"].get<double>() * 1e6 / 8, 200);
  }
}

TEST(RpcTest, TheOldNamesOfTfGrpcBenchAreKnown) {
  EXPECT_EQ(RunRpc("--benchmark=p2p-latency,p2p-bandwidth --transports=tcp "
                   "--api=sync --rounds=1 --rpcs=2 --sizes=8 > /dev/null"),
            0);
}

TEST(RpcTest, ThePageStandsAlone) {
  const std::string path = testing::TempDir() + "/page.html";
  ASSERT_EQ(RunRpc("--transports=tcp,verbs --api=sync --rounds=1 --rpcs=2 "
                   "--sizes=8 --html=" +
                   path + " > /dev/null 2>&1"),
            1);  // the flags name verbs explicitly
  std::ifstream in(path);
  const std::string page((std::istreambuf_iterator<char>(in)), {});
  EXPECT_NE(page.find("Chart.js"), std::string::npos);
  EXPECT_EQ(page.find("/*DATA*/"), std::string::npos);
  EXPECT_EQ(page.find(" src=\""), std::string::npos);
  const std::string begin = "id=\"data\">";
  const size_t data = page.find(begin) + begin.size();
  const nlohmann::json run = nlohmann::json::parse(
      page.substr(data, page.find("</script>", data) - data));
  EXPECT_EQ(run["cells"].size(), 1u);
  EXPECT_EQ(run["unavailable"].size(), 1u);
}

TEST(RpcTest, ChannelsShareTheRpcs) {
  const std::string path = testing::TempDir() + "/channels.json";
  ASSERT_EQ(RunRpc("--transports=tcp,inproc,penstock-tcp --rounds=1 --rpcs=7 "
                   "--channels=5 --sizes=8 --json=" +
                   path + " > /dev/null 2>&1"),
            0);
  const nlohmann::json cells = ReadJson(path);
  ASSERT_EQ(cells.size(), 3u * 3);
  for (const auto& cell : cells) EXPECT_EQ(cell["rpcs"], 7) << cell;
}

TEST(RpcTest, IdleChannelsTakeMemoryAndLittleElse) {
  const std::string path = testing::TempDir() + "/idle.json";
  ASSERT_EQ(RunRpc("--benchmark=idle --transports=tcp,penstock-tcp --rounds=1 "
                   "--channels=20 --sizes=8 --seconds=0.2 --json=" +
                   path + " > /dev/null 2>&1"),
            0);
  const nlohmann::json cells = ReadJson(path);
  ASSERT_EQ(cells.size(), 2u * 3);
  for (const auto& cell : cells) {
    // Expects more than 1 KiB and less than a megabyte: a connection has
    // buffers at both ends.
    EXPECT_GT(cell["kib_per_channel"], 1) << cell;
    EXPECT_LT(cell["kib_per_channel"], 1024) << cell;
    EXPECT_GE(cell["cpu_percent"], 0) << cell;
    // Allows far more than the goal, but too little for a thread that never
    // sleeps.
    EXPECT_LT(cell["cpu_percent"], 90) << cell;
  }
}

TEST(RpcTest, HandoverTellsTheReadingApart) {
  const std::string path = testing::TempDir() + "/handover.json";
  ASSERT_EQ(RunRpc("--benchmark=handover --transports=tcp,inproc,shm --rpcs=3 "
                   "--rounds=1 --sizes=8,1MiB --json=" +
                   path + " > /dev/null 2>&1"),
            0);
  const nlohmann::json cells = ReadJson(path);
  ASSERT_EQ(cells.size(), 3u * 3 * 2);
  for (const auto& cell : cells) {
    EXPECT_EQ(cell["rpcs"], 3) << cell;
    EXPECT_GT(cell["p50_us"], 0) << cell;
    EXPECT_LT(cell["p50_us"], 1e7) << cell;
    EXPECT_GT(cell["read_us"], cell["bytes"] == 8 ? 0 : 10) << cell;
  }
}

// Makes glibc return each megabyte to the system, so that each new allocation
// clears 256 pages one by one.
TEST(RpcTest, FreshMemoryShowsAsPageFaults) {
  const std::string path = testing::TempDir() + "/faults.json";
  setenv("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=65536", 1);
  const int code = RunRpc(
      "--transports=inproc,tcp --api=sync --rpcs=50 --rounds=1 "
      "--sizes=8,1MiB --json=" +
      path + " > /dev/null 2>&1");
  unsetenv("GLIBC_TUNABLES");
  ASSERT_EQ(code, 0);
  const nlohmann::json cells = ReadJson(path);
  ASSERT_EQ(cells.size(), 2u * 2);
  for (const auto& cell : cells) {
    if (cell["bytes"] == 8) {
      EXPECT_LT(cell["page_faults"], 50) << cell;
    } else {
      EXPECT_GT(cell["page_faults"], 256) << cell;
    }
  }
}

// Mixes tiny and large calls. The times must be those of the tiny calls, and
// the MB/s those of the large calls.
TEST(RpcTest, TinyCallsGoOnBesideLargeOnes) {
  const std::string path = testing::TempDir() + "/beside.json";
  ASSERT_EQ(
      RunRpc("--benchmark=beside --transports=tcp,penstock-tcp,shm "
             "--seconds=0.5 --window=2 --warm-up=5 --rounds=1 --sizes=1MiB "
             "--json=" +
             path + " > /dev/null 2>&1"),
      0);
  const nlohmann::json cells = ReadJson(path);
  ASSERT_EQ(cells.size(), 3u * 3);
  for (const auto& cell : cells) {
    EXPECT_GE(cell["rpcs"], 1) << cell;
    EXPECT_GT(cell["mb_per_s"], 1) << cell;
    EXPECT_EQ(cell.contains("chunk_bytes"), cell["transport"] != "tcp") << cell;
  }
}

TEST(RpcTest, ResentMessagesAreCounted) {
  const std::string path = testing::TempDir() + "/resend.json";
  ASSERT_EQ(RunRpc("--benchmark=resend --transports=tcp,inproc,shm --rpcs=20 "
                   "--rounds=1 --sizes=8,1MiB --json=" +
                   path + " > /dev/null 2>&1"),
            0);
  const nlohmann::json cells = ReadJson(path);
  ASSERT_EQ(cells.size(), 3u * 3 * 2);
  for (const auto& cell : cells) {
    EXPECT_EQ(cell["rpcs"], 20) << cell;
    EXPECT_GT(cell["mb_per_s"], 0) << cell;
  }
}

TEST(RpcTest, QuickRunIsMeasuredByTime) {
  const std::string path = testing::TempDir() + "/quick.json";
  ASSERT_EQ(RunRpc("--quick --transports=tcp --api=async --sizes=8 --json=" +
                   path + " > /dev/null"),
            0);
  const nlohmann::json cells = ReadJson(path);
  ASSERT_EQ(cells.size(), 1u);
  EXPECT_GE(cells[0]["rpcs"], 1);
}

TEST(RpcTest, WrongFlagExitsWithTwo) {
  EXPECT_EQ(RunRpc("--transports=pigeon 2> /dev/null"), 2);
}

TEST(RpcTest, UnwritableJsonFailsBeforeMeasuring) {
  EXPECT_EQ(RunRpc("--seconds=3600 --json=/dev/full 2> /dev/null"), 1);
  EXPECT_EQ(RunRpc("--seconds=3600 --json=/nonexistent/x 2> /dev/null"), 1);
}

TEST(RpcTest, TableOnAFullDiskIsAnError) {
  EXPECT_EQ(RunRpc("--list > /dev/full 2> /dev/null"), 1);
}

}  // namespace
