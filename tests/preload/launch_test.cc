// Tests running a program with Penstock's library preloaded, and the reasons
// why some programs cannot use Penstock.

#include "preload/launch.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "preload/check_program.h"
#include "preload/elf_facts.h"
#include "preload/find_program.h"

namespace penstock::preload {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

constexpr char kCore[] = "tests/preload/core";    // linked to libgrpc.so.29
constexpr char kOther[] = "tests/preload/other";  // to libgrpc.so.37
constexpr char kStatic[] = "tests/preload/static";
constexpr char kAsan[] = "tests/preload/asan";
constexpr char kTsan[] = "tests/preload/tsan";
constexpr char kCygrpc[] =
    "/usr/lib/python3/dist-packages/grpc/_cython/"
    "cygrpc." PYTHON_ABI ".so";
constexpr char kPath[] = "/usr/bin:/bin";

std::string Read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class LaunchTest : public testing::Test {
 protected:
  LaunchTest() {
    std::string name = absl::StrCat(testing::TempDir(), "/launch.XXXXXX");
    folder_ = mkdtemp(name.data());
  }
  ~LaunchTest() override {
    const std::string command = absl::StrCat("rm -rf ", folder_);
    if (system(command.c_str()) != 0) ADD_FAILURE() << command;
  }

  std::string Write(const std::string& name, const std::string& bytes,
                    mode_t mode = 0755) {
    const std::string file = absl::StrCat(folder_, "/", name);
    std::ofstream(file, std::ios::binary) << bytes;
    chmod(file.c_str(), mode);
    return file;
  }

  std::string folder_;
};

// Tests of how the facts of a file are read.

TEST_F(LaunchTest, ADynamicProgramNamesItsLibraries) {
  const auto facts = ReadElf(Read(kCore));
  ASSERT_TRUE(facts.has_value());
  EXPECT_TRUE(facts->is_native);
  EXPECT_TRUE(facts->is_dynamic);
  EXPECT_FALSE(facts->has_grpc);
  EXPECT_THAT(facts->needed,
              AllOf(Contains("libgrpc.so.29"), Contains("libc.so.6")));
}

TEST_F(LaunchTest, AStaticProgramIsSeenToBeOne) {
  const auto facts = ReadElf(Read(kStatic));
  ASSERT_TRUE(facts.has_value());
  EXPECT_FALSE(facts->is_dynamic);
  EXPECT_THAT(facts->needed, IsEmpty());
}

TEST_F(LaunchTest, GrpcIsFoundInAStrippedFile) {
  const auto facts = ReadElf(Read(kCygrpc));
  ASSERT_TRUE(facts.has_value());
  EXPECT_TRUE(facts->has_grpc);
}

TEST_F(LaunchTest, ASanitizerIsSeenInWhatItInstruments) {
  EXPECT_EQ(ReadElf(Read(kAsan))->sanitizer, "AddressSanitizer");
  EXPECT_EQ(ReadElf(Read(kTsan))->sanitizer, "ThreadSanitizer");
  EXPECT_EQ(ReadElf(Read("/bin/sh"))->sanitizer, "");
  // Writes the name of a sanitizer outside the loader's name table. Compilers
  // store such strings there.
  const std::string mentions("\0__asan_init\0", 13);
  EXPECT_EQ(ReadElf(Read("/bin/sh") + mentions)->sanitizer, "");
}

TEST_F(LaunchTest, AnyBytesCanBeRead) {
  const std::string good = Read(kCore);
  for (size_t size = 0; size < 4096; ++size) ReadElf(good.substr(0, size));
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  for (int round = 0; round < 3000; ++round) {
    std::string bad = good;
    for (int i = 0; i < 16; ++i) {
      // Damages the headers, which lead to the dynamic section.
      bad[SELFMAG + random() % 1000] = static_cast<char>(random());
    }
    ReadElf(bad);
  }
}

// Tests of the check of a program.

TEST_F(LaunchTest, AProgramOfOurGrpcCanBeCarried) {
  EXPECT_EQ(CheckProgram(kCore, kPath), absl::OkStatus());
  EXPECT_EQ(CheckProgram("/bin/sh", kPath), absl::OkStatus());
}

void ExpectNot(const absl::Status& status, const std::string& why) {
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(why));
}

TEST_F(LaunchTest, WhatCannotBeCarriedHasItsReason) {
  ExpectNot(CheckProgram(kStatic, kPath), "is statically linked");
  ExpectNot(CheckProgram(kOther, kPath), "is linked to libgrpc.so.37");
  ExpectNot(CheckProgram(kCygrpc, kPath), "has gRPC linked into it");
  ExpectNot(CheckProgram(folder_, kPath), "is not a file");
  std::string foreign = Read(kCore);
  foreign[offsetof(Elf64_Ehdr, e_machine)] = EM_S390;
  ExpectNot(CheckProgram(Write("foreign", foreign), kPath), "processor");
  ExpectNot(CheckProgram(Write("cut", foreign.substr(0, 10)), kPath),
            "processor");
  std::string narrow = Read(kCore);
  narrow[EI_CLASS] = ELFCLASS32;
  ExpectNot(CheckProgram(Write("narrow", narrow), kPath), "32-bit");
  std::string musl = Read(kCore);
  const size_t loader = musl.find("/ld-linux-");
  ASSERT_NE(loader, std::string::npos);
  musl.replace(loader, 10, "/ld-musl--");
  ExpectNot(CheckProgram(Write("musl", musl), kPath), "another C library");
  ExpectNot(CheckProgram(kAsan, kPath), "is built with AddressSanitizer");
  ExpectNot(CheckProgram(kTsan, kPath), "is built with ThreadSanitizer");
}

TEST_F(LaunchTest, AProgramThatGetsRightsCannotBeCarried) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a program away";
  const std::string program = Write("program", Read(kCore));
  ASSERT_EQ(chown(program.c_str(), 65534, 65534), 0);
  EXPECT_EQ(CheckProgram(program, kPath), absl::OkStatus());
  for (mode_t mode : {04755, 02755}) {
    ASSERT_EQ(chmod(program.c_str(), mode), 0);
    ExpectNot(CheckProgram(program, kPath), "more rights than its caller");
  }
  // Changes the file's owner back to this user. A set-user-ID file of the
  // user's own grants no further rights.
  ASSERT_EQ(chown(program.c_str(), 0, 0), 0);
  ASSERT_EQ(chmod(program.c_str(), 06755), 0);
  EXPECT_EQ(CheckProgram(program, kPath), absl::OkStatus());
}

TEST_F(LaunchTest, AScriptIsWhatRunsIt) {
  const std::string other = std::filesystem::absolute(kOther).string();
  for (const std::string& line :
       {absl::StrCat("#!", other), absl::StrCat("#! \t", other, " -x\nmore\n"),
        std::string("#!/usr/bin/env other\n"),
        std::string("#!/usr/bin/env -S A=B other -x\n")}) {
    ExpectNot(
        CheckProgram(Write("script", line), other.substr(0, other.rfind('/'))),
        "libgrpc.so.37");
  }
  const std::string inner = Write("inner", absl::StrCat("#!", other, "\n"));
  ExpectNot(
      CheckProgram(Write("outer", absl::StrCat("#!", inner, "\n")), kPath),
      "libgrpc.so.37");
}

TEST_F(LaunchTest, WhatNoLoaderKnowsIsLeftToTheKernel) {
  const std::string self = absl::StrCat(folder_, "/self");
  for (const std::string& text :
       {std::string(), std::string("#!"), std::string("#!  \n"),
        std::string("echo a shell runs this\n"), std::string("#!/usr/bin/env"),
        std::string("#!/usr/bin/env no-such-program\n"),
        absl::StrCat("#!", self, "\n"), std::string(5000, '\0')}) {
    EXPECT_EQ(CheckProgram(Write("self", text), kPath), absl::OkStatus())
        << text;
  }
}

TEST_F(LaunchTest, APipeIsNotWaitedFor) {
  const std::string pipe = absl::StrCat(folder_, "/pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0755), 0);
  ExpectNot(CheckProgram(pipe, kPath), "is not a file");
}

TEST_F(LaunchTest, AProgramIsFoundAsAShellFindsIt) {
  const std::string program = Write("program", "");
  EXPECT_EQ(*FindProgram("program", absl::StrCat("/nowhere:", folder_)),
            program);
  EXPECT_EQ(*FindProgram(program, ""), program);
  Write("data", "", 0644);
  EXPECT_TRUE(absl::IsPermissionDenied(FindProgram("data", folder_).status()));
  EXPECT_TRUE(absl::IsPermissionDenied(FindProgram(folder_, "").status()));
  EXPECT_TRUE(absl::IsNotFound(FindProgram("nothing", folder_).status()));
  EXPECT_TRUE(absl::IsNotFound(FindProgram("", folder_).status()));
  EXPECT_TRUE(absl::IsNotFound(FindProgram("/is/nowhere", kPath).status()));
}

// Tests of the plan of a launch.

TEST_F(LaunchTest, TheStubIsPreloadedBehindWhatIsThere) {
  const Libraries libraries = {"/lib/stub.so", "/lib/libpenstock.so.0"};
  for (const auto& [there, then] : std::map<std::string, std::string>{
           {"", "/lib/stub.so"},
           {"/a.so", "/a.so:/lib/stub.so"},
           {"/a.so /b.so", "/a.so /b.so:/lib/stub.so"},
           {"/lib/stub.so:/a.so", "/lib/stub.so:/a.so"}}) {
    const auto launch =
        Plan({kCore, "threads"}, libraries, {{"LD_PRELOAD", there}, {"A", "B"}},
             {{"PENSTOCK_FABRICS", "shm"}});
    ASSERT_TRUE(launch.ok()) << launch.status();
    EXPECT_EQ(launch->why_not, "");
    EXPECT_EQ(launch->file, kCore);
    EXPECT_THAT(launch->arguments, ElementsAre(kCore, "threads"));
    EXPECT_THAT(launch->environment,
                AllOf(Contains(Pair("LD_PRELOAD", then)),
                      Contains(Pair("PENSTOCK_FABRICS", "shm")),
                      Contains(Pair("A", "B"))));
  }
}

TEST_F(LaunchTest, SettingsOfTheCommandComeFirst) {
  const auto launch =
      Plan({kCore}, Libraries{"/lib/stub.so", ""},
           {{"PENSTOCK_POLICY", "prefer"}}, {{"PENSTOCK_POLICY", "off"}});
  ASSERT_TRUE(launch.ok());
  EXPECT_EQ(launch->environment.at("PENSTOCK_POLICY"), "off");
  EXPECT_EQ(launch->environment.count("PENSTOCK_LIBRARY"), 0u);
}

TEST_F(LaunchTest, WhatCannotBeCarriedRunsAsItIs) {
  for (const auto& [program, libraries] :
       std::map<std::string, absl::StatusOr<Libraries>>{
           {kOther, Libraries{"/lib/stub.so", ""}},
           {kStatic, Libraries{"/lib/stub.so", ""}},
           {kCore, Libraries{"/a folder/stub.so", ""}},
           {"/bin/sh", FindLibraries("/nowhere/bin/penstock")}}) {
    auto launch = Plan({program}, libraries, {{"A", "B"}}, {});
    ASSERT_TRUE(launch.ok()) << launch.status();
    EXPECT_NE(launch->why_not, "") << program;
    EXPECT_THAT(launch->environment, ElementsAre(Pair("A", "B")));
    launch = Plan({program}, libraries, {}, {{"PENSTOCK_POLICY", "require"}});
    ExpectNot(launch.status(), "Penstock is required but not used: ");
    EXPECT_EQ(ExitCodeOf(launch.status()), 126);
  }
}

TEST_F(LaunchTest, AProgramThatIsNotThereHasTheShellsExitCode) {
  const Environment environment = {{"PATH", folder_}};
  Write("data", "", 0644);
  EXPECT_EQ(
      ExitCodeOf(Plan({"nothing"}, Libraries{}, environment, {}).status()),
      127);
  EXPECT_EQ(ExitCodeOf(Plan({"data"}, Libraries{}, environment, {}).status()),
            126);
}

TEST_F(LaunchTest, NoShellIsGivenAProgramThatTheKernelCannotRun) {
  std::string foreign = Read(kCore);
  foreign[offsetof(Elf64_Ehdr, e_machine)] = EM_S390;
  const std::string file = Write("foreign", foreign);
  const absl::Status status = Exec({file, {file}, {}, ""});
  ExpectNot(status, "another processor");
  EXPECT_EQ(ExitCodeOf(status), 126);
}

TEST_F(LaunchTest, LibrariesAreFoundBesideTheCommand) {
  mkdir(absl::StrCat(folder_, "/cli").c_str(), 0755);
  mkdir(absl::StrCat(folder_, "/preload").c_str(), 0755);
  const std::string self = absl::StrCat(folder_, "/cli/penstock");
  EXPECT_THAT(std::string(FindLibraries(self).status().message()),
              AllOf(HasSubstr("libpenstock-preload.so"),
                    HasSubstr("-linux-gnu/penstock/")));
  Write("preload/libpenstock-preload.so", "");
  const auto found = FindLibraries(self);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(found->stub, HasSubstr("/preload/libpenstock-preload.so"));
  EXPECT_THAT(found->library, HasSubstr("/penstock/libpenstock.so.0"));
}

}  // namespace
}  // namespace penstock::preload
