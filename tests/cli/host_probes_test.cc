// Tests the doctor's findings on memory, namespaces, settings, cores and GPUs,
// and the paths that it predicts.

#include <string>

#include "cli/doctor/probes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/fake_host.h"

namespace penstock::cli {
namespace {

using fabric::shm::HugePages;
using progress::PollingMode;

const PathVerdict* PathOf(const std::vector<PathVerdict>& paths,
                          const std::string& fabric) {
  for (const PathVerdict& each : paths) {
    if (each.fabric == fabric) return &each;
  }
  return nullptr;
}

TEST(SharedMemoryProbeTest, CallsThatFailAreProblemsWithARemedy) {
  FakeHost host;
  EXPECT_EQ(Only(ProbeSharedMemory(*host), "memory").level, Level::kOk);
  host->memfd = absl::PermissionDeniedError("memfd_create: EACCES");
  const Finding found = Only(ProbeSharedMemory(*host), "memory");
  EXPECT_EQ(found.level, Level::kProblem);
  EXPECT_NE(found.remedy.find("vm.memfd_noexec"), std::string::npos);
}

// Tests that only the trial decides. The results of shm's system calls do not
// matter.
TEST(SharedMemoryProbeTest, TheVerdictIsThatOfTheTrial) {
  FakeHost host;
  EXPECT_TRUE(PathOf(JudgePaths(*host), "shm")->usable);
  EXPECT_EQ(Only(ProbeSharedMemory(*host), "trial").level, Level::kOk);
  host->trials["shm"] = absl::UnavailableError(
      "/proc/sys/kernel/random/boot_id cannot be read: peers could not tell");
  EXPECT_FALSE(PathOf(JudgePaths(*host), "shm")->usable);
  EXPECT_NE(PathOf(JudgePaths(*host), "shm")->text.find("boot_id"),
            std::string::npos);
  const Finding found = Only(ProbeSharedMemory(*host), "trial");
  EXPECT_EQ(found.level, Level::kProblem);
  EXPECT_NE(found.remedy.find("mount -t proc"), std::string::npos);
  // Disables a fabric by the settings. The doctor must not report this as a
  // problem.
  host->settings->shm_sharing = ShmSharing::kOff;
  EXPECT_EQ(PathOf(JudgePaths(*host), "shm")->text, "PENSTOCK_SHM_SHARING=off");
  EXPECT_FALSE(Mentions(ProbeSharedMemory(*host), "boot_id"));
}

TEST(SharedMemoryProbeTest, AContainerIsANoteUnlessADirectoryIsSet) {
  FakeHost host;
  EXPECT_EQ(Only(ProbeSharedMemory(*host), "container").text, "no");
  host.Write("/run/.containerenv", "");
  Finding found = Only(ProbeSharedMemory(*host), "container");
  EXPECT_EQ(found.level, Level::kNote);
  EXPECT_NE(found.text.find("Podman"), std::string::npos);
  host->settings->shm_directory = "/shared";
  EXPECT_EQ(Only(ProbeSharedMemory(*host), "container").level, Level::kOk);
  found = Only(ProbeSharedMemory(*host), "directory");
  EXPECT_EQ(found.level, Level::kProblem);
  host.Write("/shared/.keep", "");
  EXPECT_EQ(Only(ProbeSharedMemory(*host), "directory").level, Level::kOk);
}

TEST(SharedMemoryProbeTest, AUserNamespaceOfItsOwnIsANote) {
  FakeHost host;
  host.Write("/proc/self/uid_map", "         0          0 4294967295\n");
  EXPECT_EQ(Only(ProbeSharedMemory(*host), "user namespace").level, Level::kOk);
  host.Write("/proc/self/uid_map", "         0       1000          1\n");
  EXPECT_EQ(Only(ProbeSharedMemory(*host), "user namespace").level,
            Level::kNote);
}

TEST(HugePagesProbeTest, NeverIsANoteAndAdviseIsFine) {
  FakeHost host;
  const std::string file = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
  EXPECT_EQ(Only(ProbeHugePages(*host), "huge pages").level, Level::kOk);
  host.Write(file, "always within_size [advise] never deny force\n");
  EXPECT_EQ(Only(ProbeHugePages(*host), "huge pages").level, Level::kOk);
  host.Write(file, "always within_size advise [never] deny force\n");
  const Finding found = Only(ProbeHugePages(*host), "huge pages");
  EXPECT_EQ(found.level, Level::kNote);
  EXPECT_EQ(found.remedy, "echo advise > " + file);
  host->huge_pages = HugePages::kOff;
  EXPECT_EQ(Only(ProbeHugePages(*host), "huge pages").level, Level::kOk);
}

TEST(HugePagesProbeTest, ReservedOnesMustBeThere) {
  FakeHost host;
  host->huge_pages = HugePages::kReserved;
  const std::string folder = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
  host.Write(folder + "nr_hugepages", "512\n");
  host.Write(folder + "free_hugepages", "500\n");
  EXPECT_EQ(Only(ProbeHugePages(*host), "huge pages").text,
            "500 of 512 reserved pages of 2 MiB are free");
  host.Write(folder + "free_hugepages", "0\n");
  EXPECT_EQ(Only(ProbeHugePages(*host), "huge pages").level, Level::kProblem);
}

TEST(MemoryLimitProbeTest, TheLowestGroupAboveCounts) {
  FakeHost host;
  host.Write("/proc/self/cgroup", "0::/a/b\n");
  EXPECT_EQ(Only(ProbeMemoryLimit(*host), "memory limit").level, Level::kOk);
  host.Write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  host.Write("/sys/fs/cgroup/a/memory.max", "536870912\n");
  const Finding found = Only(ProbeMemoryLimit(*host), "memory limit");
  EXPECT_EQ(found.level, Level::kNote);
  EXPECT_EQ(found.text.find("512 MiB, of the control group"), 0U);
}

TEST(MemoryLimitProbeTest, Version1HasItsOwnFiles) {
  FakeHost host;
  host.Write("/proc/self/cgroup", "4:cpu,memory:/x\n0::/\n");
  host.Write("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1073741824\n");
  EXPECT_EQ(Only(ProbeMemoryLimit(*host), "memory limit").level, Level::kNote);
}

// Tests a memory limit that leaves the arena less than its default. By default
// the arena is a quarter of the limit, at most 1 GiB.
TEST(MemoryLimitProbeTest, ALimitThatLeavesTheArenaLessThanItsDefaultIsNoted) {
  FakeHost host;
  host.Write("/proc/self/cgroup", "0::/a\n");
  host.Write("/sys/fs/cgroup/a/memory.max", "3221225472\n");
  const Finding found = Only(ProbeMemoryLimit(*host), "memory limit");
  EXPECT_EQ(found.level, Level::kNote);
  EXPECT_NE(found.remedy.find("a quarter of it, 768 MiB"), std::string::npos)
      << found.remedy;
  host.Write("/sys/fs/cgroup/a/memory.max", "4294967296\n");
  EXPECT_EQ(Only(ProbeMemoryLimit(*host), "memory limit").level, Level::kOk);
}

TEST(MemoryLimitProbeTest, TheSettingOfTheArenaCounts) {
  FakeHost host;
  host.Write("/proc/self/cgroup", "0::/a\n");
  host.Write("/sys/fs/cgroup/a/memory.max", "4294967296\n");
  host->arena_bytes = uint64_t{3} << 30;
  const Finding found = Only(ProbeMemoryLimit(*host), "memory limit");
  EXPECT_EQ(found.level, Level::kNote);
  EXPECT_NE(found.remedy.find("PENSTOCK_SHM_ARENA_MIB lets large messages take "
                              "3 GiB"),
            std::string::npos)
      << found.remedy;
  host->arena_bytes = uint64_t{16} << 20;
  EXPECT_EQ(Only(ProbeMemoryLimit(*host), "memory limit").level, Level::kOk);
}

TEST(GrpcProbeTest, AnotherReleaseIsAProblemAndLeavesStockGrpc) {
  FakeHost host;
  EXPECT_EQ(Only(ProbeGrpc(*host), "gRPC").level, Level::kOk);
  host->grpc_mismatch = "gRPC core 30.0.0 is loaded";
  EXPECT_EQ(Only(ProbeGrpc(*host), "gRPC").level, Level::kProblem);
  const auto paths = JudgePaths(*host);
  ASSERT_EQ(paths.size(), 1U);
  EXPECT_EQ(paths[0].fabric, "http2");
}

TEST(PythonProbeTest, NamesWhatIsMissingNextToTheLibrary) {
  FakeHost host;
  EXPECT_EQ(Only(ProbePython(*host), "Python").level, Level::kNote);
  host->preload_folder = "/lib/penstock";
  EXPECT_TRUE(Mentions(ProbePython(*host), "cygrpc is missing"));
  EXPECT_TRUE(Mentions(ProbePython(*host), "penstock.grpc is missing"));
  host.Write("/lib/penstock/python/cygrpc.cpython-311.so", "");
  host.Write("/lib/penstock/python/penstock/_rpc.cpython-311.so", "");
  EXPECT_TRUE(Mentions({Only(ProbePython(*host), "Python")},
                       "penstock.grpc is missing"));
  host.Write("/lib/penstock/python/penstock/grpc/_run.py", "");
  const Finding found = Only(ProbePython(*host), "Python");
  EXPECT_EQ(found.level, Level::kOk);
  EXPECT_NE(found.text.find("cygrpc.cpython-311.so"), std::string::npos);
}

TEST(SettingsProbeTest, AMisspeltOneIsAProblemThatNamesTheRightOne) {
  FakeHost host;
  host->environment = {{"PENSTOCK_FABRIC", "shm"}, {"HOME", "/"}};
  const Finding found = Only(ProbeSettings(*host), "settings");
  EXPECT_EQ(found.level, Level::kProblem);
  EXPECT_EQ(found.remedy, "did you mean PENSTOCK_FABRICS?");
}

TEST(SettingsProbeTest, ABadValueIsAProblemThatNamesGoodOnes) {
  FakeHost host;
  host->environment = {{"PENSTOCK_POLLING", "bussy\x1b[31m"}};
  const Finding found = Only(ProbeSettings(*host), "settings");
  EXPECT_EQ(found.level, Level::kProblem);
  EXPECT_NE(found.text.find("adaptive, busy or event"), std::string::npos);
  EXPECT_EQ(found.text.find('\x1b'), std::string::npos);
}

TEST(SettingsProbeTest, GoodOnesAndThoseOfTensorFlowAreShown) {
  FakeHost host;
  EXPECT_EQ(Only(ProbeSettings(*host), "settings").level, Level::kOk);
  host->environment = {{"PENSTOCK_LOG", "warning"},
                       {"PENSTOCK_TENSORFLOW_MEMORY", "device"}};
  const Findings found = ProbeSettings(*host);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].text, "PENSTOCK_LOG=warning");
  EXPECT_EQ(found[1].level, Level::kOk);
}

TEST(SettingsProbeTest, AnEmptyOneIsSaidToBeUnset) {
  FakeHost host;
  host->environment = {{"PENSTOCK_SHM_DIRECTORY", ""}};
  const Finding found = Only(ProbeSettings(*host), "settings");
  EXPECT_EQ(found.level, Level::kOk);
  EXPECT_EQ(found.text,
            "PENSTOCK_SHM_DIRECTORY is empty, which counts as unset");
}

TEST(SettingsProbeTest, WhatOnlyAllOfThemShowIsAProblem) {
  FakeHost host;
  host->environment = {{"PENSTOCK_FABRICS", "shm,shm"}};
  host->settings = absl::InvalidArgumentError("names shm twice");
  EXPECT_TRUE(Mentions(ProbeSettings(*host), "names shm twice"));
}

TEST(CoresProbeTest, BusyPollingOnOneCoreIsAProblem) {
  FakeHost host;
  EXPECT_EQ(Only(ProbeCores(*host), "cores").level, Level::kOk);
  host->usable_cores = 1;
  EXPECT_EQ(Only(ProbeCores(*host), "cores").level, Level::kNote);
  EXPECT_TRUE(Mentions(ProbeCores(*host), "1 of 8, by affinity or quota"));
  host->polling = PollingMode::kBusy;
  EXPECT_EQ(Only(ProbeCores(*host), "cores").level, Level::kProblem);
}

TEST(OpenFilesProbeTest, FewAreANoteWithTheCommandThatRaisesThem) {
  FakeHost host;
  host->open_files = 256;
  const Finding found = Only(ProbeOpenFiles(*host), "open files");
  EXPECT_EQ(found.level, Level::kNote);
  EXPECT_EQ(found.remedy, "ulimit -n 4096");
}

TEST(ClockProbeTest, AClockThatIsSlowToReadIsANote) {
  FakeHost host;
  const std::string file =
      "/sys/devices/system/clocksource/clocksource0/current_clocksource";
  EXPECT_EQ(Only(ProbeClock(*host), "clock").level, Level::kOk);
  host.Write(file, "hpet\n");
  EXPECT_EQ(Only(ProbeClock(*host), "clock").level, Level::kNote);
}

TEST(CudaProbeTest, GpuDirectIsSaidNotToBeUsed) {
  FakeHost host;
  EXPECT_EQ(Only(ProbeCuda(*host), "CUDA").text,
            "no driver, or no device, here");
  device::Survey survey;
  survey.version = 12040;
  survey.devices.resize(2);
  survey.devices[0] = {"GPU one", "GPU-1", "0000:0f:00.0", 2, 132, true, true};
  survey.devices[1] = {
      "\x1b[31mGPU two", "GPU-2", "0000:10:00.0", 2, 132, false, false};
  host->cuda = survey;
  EXPECT_EQ(Only(ProbeCuda(*host), "CUDA").text, "12.4");
  EXPECT_THAT(Only(ProbeCuda(*host), "0000:0f:00.0").text,
              testing::HasSubstr("there, by DMA-BUF"));
  EXPECT_THAT(Only(ProbeCuda(*host), "0000:10:00.0").text,
              testing::AllOf(testing::HasSubstr("not set up"),
                             testing::Not(testing::HasSubstr("\x1b"))));
  host.Write("/sys/module/nvidia_peermem/initstate", "live\n");
  EXPECT_TRUE(Mentions(ProbeCuda(*host), "there, by nvidia_peermem"));
  EXPECT_TRUE(Mentions(ProbeCuda(*host), "does not use it"));
  host->cuda = absl::UnavailableError("start the CUDA driver: CUDA error 999");
  EXPECT_EQ(Only(ProbeCuda(*host), "CUDA").level, Level::kNote);
}

TEST(JudgePathsTest, FabricsAndPolicyAreRespected) {
  FakeHost host;
  auto paths = JudgePaths(*host);
  EXPECT_TRUE(PathOf(paths, "shm")->usable);
  EXPECT_FALSE(PathOf(paths, "verbs")->usable);
  EXPECT_TRUE(PathOf(paths, "tcp")->usable);
  EXPECT_TRUE(PathOf(paths, "http2")->usable);

  host->settings->fabrics = {Fabric::kVerbs};
  host->settings->policy = Policy::kRequire;
  paths = JudgePaths(*host);
  EXPECT_FALSE(PathOf(paths, "shm")->usable);
  EXPECT_FALSE(PathOf(paths, "tcp")->usable);
  EXPECT_EQ(PathOf(paths, "http2"), nullptr);

  host.AddAdapter();
  host.AddAddress();
  EXPECT_EQ(PathOf(JudgePaths(*host), "verbs")->text,
            "to machines that RDMA reaches from 10.0.0.1");
  host->settings->policy = Policy::kOff;
  ASSERT_EQ(JudgePaths(*host).size(), 1U);
}

TEST(JudgePathsTest, WhatIsBehindTcpIsNotTried) {
  FakeHost host;
  host->settings->fabrics = {Fabric::kTcp, Fabric::kShm};
  host->trials.clear();
  const auto paths = JudgePaths(*host);
  EXPECT_FALSE(PathOf(paths, "shm")->usable);
  EXPECT_NE(PathOf(paths, "shm")->text.find("behind tcp"), std::string::npos);
  EXPECT_EQ(PathOf(paths, "verbs")->text, "not in PENSTOCK_FABRICS");
}

TEST(JudgePathsTest, StockGrpcIsNoWayOutWherePenstockIsRequired) {
  FakeHost host;
  host->environment = {{"PENSTOCK_POLICY", "require"}};
  host->grpc_mismatch = "gRPC core 30.0.0 is loaded";
  const auto paths = JudgePaths(*host);
  ASSERT_EQ(paths.size(), 1U);
  EXPECT_FALSE(paths[0].usable);
  EXPECT_EQ(paths[0].text,
            "PENSTOCK_POLICY=require, and another gRPC is loaded");
}

}  // namespace
}  // namespace penstock::cli
