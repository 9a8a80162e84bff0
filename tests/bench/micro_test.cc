// Runs the benchmarks of bench/micro.

#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <string>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace {

TEST(MicroTest, EachBenchmarkRuns) {
  const std::string path = testing::TempDir() + "/micro.json";
  const std::string command =
      "bench/micro/micro --benchmark_min_time=0.001 --benchmark_out=" + path +
      " > /dev/null 2>&1";
  const int status = std::system(command.c_str());
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  std::ifstream in(path);
  const nlohmann::json result =
      nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  ASSERT_TRUE(result["benchmarks"].is_array());
  std::set<std::string> names;
  for (const auto& benchmark : result["benchmarks"]) {
    const std::string name = benchmark["name"];
    EXPECT_EQ(benchmark.value("error_message", ""), "") << name;
    names.insert(name.substr(0, name.find('/')));
  }
  // Names one benchmark of each file, because the linker drops unreferenced
  // files.
  for (const char* name :
       {"AppendFrame", "OutboxBatch", "PollIdlePaths", "RingPacket",
        "SessionCall", "EncodeRequestMetadata", "CopiedAndReadInPages"}) {
    EXPECT_EQ(names.count(name), 1u) << name;
  }
}

}  // namespace
