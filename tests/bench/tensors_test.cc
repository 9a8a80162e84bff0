// Tests the data, the sum and the program of bench/tensors.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/tensors/contender.h"
#include "bench/tensors/models.h"
#include "bench/tensors/report.h"
#include "bench/tensors/sum.h"
#include "gtest/gtest.h"

namespace penstock::bench {
namespace {

// Returns the numbers of tensors and elements that the models' authors and
// libraries state.
const std::map<std::string, std::pair<size_t, size_t>>& Known() {
  static const auto* const known =
      new std::map<std::string, std::pair<size_t, size_t>>{
          {"resnet50", {161, 25557032}},
          {"resnet50_slice", {1, 25557032}},
          {"vgg16", {32, 138357544}},
          {"bert_base", {199, 109482240}},
          {"inception_v3", {292, 27161264}},
          {"small", {1000, 64000}},
          {"dlrm", {40, 529233}}};
  return *known;
}

TEST(ModelsTest, HaveTheTensorsAndElementsOfTheirSource) {
  EXPECT_EQ(EmbeddedModels().size(), Known().size());
  for (const EmbeddedModel& embedded : EmbeddedModels()) {
    const auto model = ParseModel(embedded.name, embedded.text);
    ASSERT_TRUE(model.ok()) << model.status();
    const auto known = Known().find(model->name);
    ASSERT_NE(known, Known().end()) << model->name;
    EXPECT_EQ(model->variables.size(), known->second.first) << model->name;
    EXPECT_EQ(model->byte_size(), 4 * known->second.second) << model->name;
    std::set<std::string> names;
    for (const Variable& variable : model->variables) {
      names.insert(variable.name);
    }
    EXPECT_EQ(names.size(), model->variables.size()) << model->name;
  }
}

TEST(ModelsTest, LineThatIsNoVariableIsNamed) {
  for (const char* line : {"weight 3 x", "weight -1", "weight 0"}) {
    const auto model = ParseModel("m", absl::StrCat("# m\nbias 3\n", line));
    ASSERT_FALSE(model.ok());
    EXPECT_NE(model.status().message().find(line), std::string::npos)
        << model.status();
  }
  EXPECT_NE(FindModel("alexnet").status().message().find("resnet50"),
            std::string::npos);
}

TEST(SumTest, EveryByteCounts) {
  for (size_t size : {0, 1, 7, 8, 31, 32, 33, 1000}) {
    const std::string zeroes(size, '\0');
    EXPECT_EQ(SumOf(zeroes), 0u);
    for (size_t i = 0; i < size; ++i) {
      std::string one = zeroes;
      one[i] = 1;
      EXPECT_EQ(SumOf(one), uint64_t{1} << 8 * (i % 8)) << i << " of " << size;
    }
  }
}

TEST(ReportTest, StepSurvivesItsLine) {
  const auto step = FromLine(ToLine({1.5, 2.5, 3.5, 4}));
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_EQ(step->handed_us, 1.5);
  EXPECT_EQ(step->read_us, 2.5);
  EXPECT_EQ(step->call_us, 3.5);
  EXPECT_EQ(step->page_faults, 4);
  EXPECT_FALSE(FromLine("1 2 3").ok());
  EXPECT_FALSE(FromLine("1 2 3 x").ok());
}

// Returns the exit code of the program with these flags. The output goes to
// `path`, and error messages to `errors`.
int RunTensors(const std::string& flags, const std::string& path,
               const std::string& errors = "/dev/null") {
  const int status = std::system(
      absl::StrCat("bench/tensors/tensors ", flags, " > ", path, " 2> ", errors)
          .c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string Contents(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

TEST(TensorsTest, EveryContenderReadsTheRightBytes) {
  const std::string path = testing::TempDir() + "/table";
  std::string contenders;
  for (const Contender& contender : AllContenders()) {
    if (contender.transport == Transport::kVerbs) continue;
    if (UsesDevice(contender)) continue;
    absl::StrAppend(&contenders, contenders.empty() ? "" : ",", contender.name);
  }
  ASSERT_EQ(RunTensors(absl::StrCat("--models=small,dlrm --rounds=1 "
                                    "--seconds=0 --contenders=",
                                    contenders),
                       path),
            0)
      << Contents(path);
  const std::string table = Contents(path);
  for (absl::string_view contender : absl::StrSplit(contenders, ',')) {
    EXPECT_NE(table.find(absl::StrCat("\n", contender, " ")), std::string::npos)
        << contender << "\n"
        << table;
  }
  EXPECT_EQ(table.find("unavailable"), std::string::npos) << table;
}

TEST(TensorsTest, WrongNamesAreRefusedBeforeAnythingIsMeasured) {
  const std::string path = testing::TempDir() + "/refused";
  EXPECT_EQ(RunTensors("--models=small,alexnet", path), 2);
  EXPECT_EQ(RunTensors("--contenders=tcp,rdma", path), 2);
  EXPECT_EQ(Contents(path), "");
}

// Tests a machine without a GPU. Nothing may replace the GPU, and no output may
// look like a GPU's figures.
TEST(TensorsTest, WithoutADeviceItsMemoryIsNotMeasured) {
  if (access("/dev/nvidiactl", F_OK) == 0) GTEST_SKIP() << "there is a GPU";
  const std::string path = testing::TempDir() + "/device";
  for (const char* flags :
       {"--memory=device", "--contenders=tcp,shm-device", "--contenders=d2h"}) {
    EXPECT_EQ(RunTensors(absl::StrCat(flags, " --models=small"), path,
                         path + ".error"),
              1);
    EXPECT_EQ(Contents(path), "");
    EXPECT_NE(Contents(path + ".error").find("NVIDIA"), std::string::npos)
        << Contents(path + ".error");
    EXPECT_NE(Contents(path + ".error").find("without --memory=device"),
              std::string::npos);
  }
  EXPECT_NE(RunTensors("--memory=gpu", path), 0);
}

TEST(TensorsTest, TransportThatIsNotThereIsARowAndAFailure) {
  const std::string path = testing::TempDir() + "/missing";
  EXPECT_EQ(RunTensors("--models=small --rounds=1 --seconds=0 "
                       "--host=203.0.113.1 --contenders=tcp,read",
                       path),
            1);
  EXPECT_NE(Contents(path).find("unavailable: cannot serve over tcp"),
            std::string::npos)
      << Contents(path);
}

}  // namespace
}  // namespace penstock::bench
