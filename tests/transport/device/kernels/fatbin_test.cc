// Tests that the embedded file has the kernels that the plans name, for each
// architecture that the file names.

#include "transport/device/kernels/fatbin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/transport/device/kernels/fatbin_reader.h"
#include "transport/device/kernels/launch_plan.h"

namespace penstock::device::kernels {
namespace {

using testing::HasSubstr;
using testing::Not;

std::set<std::string> AllKernelNames() {
  std::set<std::string> names;
  for (int operation = 0; operation < 3; ++operation) {
    for (int type = 0; type < 3; ++type) {
      names.insert(KernelName(static_cast<Operation>(operation),
                              static_cast<ElementType>(type)));
    }
  }
  return names;
}

class FatbinTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto fatbin = Fatbin();
    if (!fatbin.ok()) GTEST_SKIP() << fatbin.status().message();
    fatbin_ = absl::string_view(reinterpret_cast<const char*>(fatbin->data()),
                                fatbin->size());
  }

  // Returns the images of the file. Returns none if the file cannot be read;
  // the test is then skipped.
  std::vector<Image> Read() {
    auto images = ReadFatbin(fatbin_);
    if (images.ok()) return *std::move(images);
    EXPECT_EQ(images.status().code(), absl::StatusCode::kUnimplemented)
        << images.status();
    return {};
  }

  absl::string_view fatbin_;
};

TEST_F(FatbinTest, ItIsAlignedAndSmall) {
  EXPECT_EQ(reinterpret_cast<uintptr_t>(fatbin_.data()) % 16, 0u);
  // Limits the size of this file in each library with the kernels. CUDA 13.0
  // makes 32,280 bytes.
  EXPECT_LT(fatbin_.size(), 64u * 1024);
}

TEST_F(FatbinTest, ItHasCodeForEachArchitectureThatItNames) {
  const std::vector<Image> images = Read();
  if (images.empty()) GTEST_SKIP() << "the fatbin cannot be read here";
  std::vector<std::string> found;
  for (const Image& image : images) found.push_back(image.architecture);
  const std::vector<std::string> named = absl::StrSplit(Architectures(), ' ');
  EXPECT_THAT(found, testing::UnorderedElementsAreArray(named));
}

TEST_F(FatbinTest, EachImageHasTheKernelsThatPlansName) {
  const std::vector<Image> images = Read();
  if (images.empty()) GTEST_SKIP() << "the fatbin cannot be read here";
  ASSERT_EQ(AllKernelNames().size(), 9u);
  for (const Image& image : images) {
    EXPECT_EQ(KernelsOf(image), AllKernelNames()) << image.architecture;
  }
}

// Tests that each operation of the PTX has .rn. Without .rn, the compiler of
// the PTX may fuse operations.
TEST_F(FatbinTest, ThePtxRoundsEachOperationAndKeepsSubnormals) {
  const std::vector<Image> images = Read();
  if (images.empty()) GTEST_SKIP() << "the fatbin cannot be read here";
  const std::string& ptx =
      std::find_if(images.begin(), images.end(), [](const Image& image) {
        return image.architecture.rfind("compute_", 0) == 0;
      })->content;
  EXPECT_THAT(ptx, HasSubstr("add.rn.f32"));
  EXPECT_THAT(ptx, HasSubstr("mul.rn.f32"));
  EXPECT_THAT(ptx, HasSubstr("cvt.rn.f16.f32"));
  for (const char* absent : {"fma.", ".ftz", "add.f32", "mul.f32", "sub.f32"}) {
    EXPECT_THAT(ptx, Not(HasSubstr(absent)));
  }
  // Expects that a vector is loaded by one instruction.
  EXPECT_THAT(ptx, HasSubstr("ld.global.v4"));
  EXPECT_THAT(ptx, HasSubstr("st.global.v4"));
}

// Returns the output of the command.
std::string OutputOf(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  while (size_t got = fread(buffer, 1, sizeof(buffer), pipe)) {
    output.append(buffer, got);
  }
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

// Returns the path of cuobjdump: preferably of the toolkit that compiled the
// kernels, else any other. Returns "" if there is none.
std::string FindCuobjdump() {
  std::vector<std::string> folders = absl::StrSplit(getenv("PATH"), ':');
  const std::string nvcc = PENSTOCK_NVCC;
  folders.insert(folders.begin(), nvcc.substr(0, nvcc.rfind('/')));
  for (const std::string& folder : folders) {
    const std::string path = folder + "/cuobjdump";
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

size_t CountOf(const std::string& what, const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, what);
  return parts.size() - 1;
}

TEST_F(FatbinTest, CuobjdumpSeesTheSame) {
  const std::string cuobjdump = FindCuobjdump();
  if (cuobjdump.empty()) {
    GTEST_SKIP() << "there is no cuobjdump in this toolkit";
  }
  const std::string file = absl::StrCat(testing::TempDir(), "/reduce.fatbin");
  std::ofstream(file, std::ios::binary) << fatbin_;
  const std::string listed =
      OutputOf(absl::StrCat(cuobjdump, " --list-elf --list-ptx ", file));
  const std::vector<std::string> named = absl::StrSplit(Architectures(), ' ');
  for (const std::string& architecture : named) {
    const bool is_ptx = architecture.rfind("compute_", 0) == 0;
    EXPECT_THAT(
        listed,
        HasSubstr(is_ptx ? absl::StrCat("sm_", architecture.substr(8), ".ptx")
                         : absl::StrCat(architecture, ".cubin")));
  }
  EXPECT_EQ(CountOf(" file ", listed), named.size());
  const std::string symbols =
      OutputOf(absl::StrCat(cuobjdump, " -symbols ", file));
  for (const std::string& name : AllKernelNames()) {
    EXPECT_EQ(CountOf(absl::StrCat(" ", name, "\n"), symbols), named.size() - 1)
        << name;
  }
}

}  // namespace
}  // namespace penstock::device::kernels
