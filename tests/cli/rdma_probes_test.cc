// Tests the doctor's findings on working and broken RDMA devices.

#include <string>

#include "absl/strings/str_cat.h"
#include "cli/doctor/probes.h"
#include "gtest/gtest.h"
#include "tests/cli/fake_host.h"

namespace penstock::cli {
namespace {

constexpr char kPort[] = "/sys/class/infiniband/mlx5_0/ports/1";

bool HasProblem(const Findings& findings) {
  for (const Finding& each : findings) {
    if (each.level == Level::kProblem) return true;
  }
  return false;
}

class AdapterTest : public testing::Test {
 protected:
  AdapterTest() {
    host_.AddAdapter();
    host_.AddAddress();
  }

  FakeHost host_;
};

TEST(NoAdapterTest, ItIsANoteThatSaysHowToTry) {
  FakeHost host;
  host.Write("/sys/class/net/lo/operstate", "unknown\n");
  host.Write("/sys/class/net/ens5/operstate", "up\n");
  host.Write("/sys/class/net/ens5/device/vendor", "0x1af4\n");
  const Finding found = Only(ProbeDevices(*host), "devices");
  EXPECT_EQ(found.level, Level::kNote);
  EXPECT_NE(found.remedy.find("netdev ens5"), std::string::npos);
}

TEST(NoAdapterTest, AnAdapterWithoutItsDriverIsAProblem) {
  FakeHost host;
  host.Write("/sys/bus/pci/devices/0000:81:00.0/vendor", "0x15b3\n");
  host.Write("/sys/bus/pci/devices/0000:81:00.0/class", "0x020000\n");
  const Finding found = Only(ProbeDevices(*host), "devices");
  EXPECT_EQ(found.level, Level::kProblem);
  EXPECT_NE(found.remedy.find("modprobe mlx5_ib"), std::string::npos);
}

TEST(NoAdapterTest, MissingLibrariesAreANoteOnly) {
  FakeHost host;
  host->rdma_libraries = absl::NotFoundError("no RDMA library here");
  const Finding found = Only(ProbeRdmaFiles(*host), "libraries");
  EXPECT_EQ(found.level, Level::kNote);
  EXPECT_NE(found.remedy.find("apt-get install libibverbs1"),
            std::string::npos);
}

TEST_F(AdapterTest, AWholeOneHasNoProblem) {
  Findings all = ProbeDevices(*host_);
  for (const Findings& more :
       {ProbeRdmaFiles(*host_), ProbeLockedMemory(*host_)}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  for (const Finding& each : all) {
    EXPECT_EQ(each.level, Level::kOk) << each.subject << ": " << each.text;
  }
  EXPECT_EQ(Only(all, "mlx5_0").text, "mlx5_core, firmware 22.35.1012");
  EXPECT_EQ(ProbeDevices(*host_)[1].text,
            "10.0.0.1: GID 1, RoCE v2, mtu 4096, 100 Gb/sec (4X EDR); of the "
            "port's 2 GIDs, that of this address");
  EXPECT_EQ(Only(all, "device files").text,
            "/dev/infiniband: rdma_cm, uverbs0");
  EXPECT_EQ(Only(all, "kernel modules").text, "ib_uverbs, rdma_cm, rdma_ucm");
}

TEST_F(AdapterTest, APortThatIsDownIsAProblemThatNamesItsInterface) {
  host_.Write(absl::StrCat(kPort, "/state"), "1: DOWN\n");
  const Finding found = Only(ProbeDevices(*host_), "mlx5_0/1");
  EXPECT_EQ(found.level, Level::kProblem);
  EXPECT_EQ(found.text, "the port is DOWN, not ACTIVE");
  EXPECT_EQ(found.remedy.find("ip link set eth2 up"), 0U);
}

TEST_F(AdapterTest, InfiniBandThatWaitsForASubnetManagerSaysSo) {
  host_.Write(absl::StrCat(kPort, "/state"), "2: INIT\n");
  host_.Write(absl::StrCat(kPort, "/link_layer"), "InfiniBand\n");
  const Finding found = Only(ProbeDevices(*host_), "mlx5_0/1");
  EXPECT_NE(found.remedy.find("opensm"), std::string::npos);
}

TEST_F(AdapterTest, ASmallMtuIsANote) {
  host_->rdma->front().description = "mlx5_0/1, GID 1, RoCE v2, mtu 1024";
  const Finding found = ProbeDevices(*host_)[1];
  EXPECT_EQ(found.level, Level::kNote);
  EXPECT_NE(found.remedy.find("ip link set eth2 mtu"), std::string::npos);
}

TEST_F(AdapterTest, WindowsThatAreNotTrustedAreANote) {
  host_->rdma->front().windows =
      absl::FailedPreconditionError("reads reach beyond a window");
  const Findings found = ProbeDevices(*host_);
  EXPECT_TRUE(Mentions(found, "reads reach beyond a window"));
  EXPECT_FALSE(HasProblem(found));
}

TEST_F(AdapterTest, NoAddressAtAllIsAProblem) {
  host_->rdma = absl::NotFoundError("no RDMA device here has an address");
  const Finding found = Only(ProbeDevices(*host_), "address");
  EXPECT_EQ(found.level, Level::kProblem);
}

TEST_F(AdapterTest, AnotherPortWithoutAddressIsANote) {
  host_->rdma->front().device = "mlx5_1";
  const Finding found = Only(ProbeDevices(*host_), "mlx5_0/1");
  EXPECT_EQ(found.level, Level::kNote);
  EXPECT_NE(found.remedy.find("dev eth2"), std::string::npos);
}

TEST_F(AdapterTest, MissingDeviceFilesAreAProblem) {
  host_.Remove("/dev/infiniband");
  const Findings found = ProbeRdmaFiles(*host_);
  EXPECT_TRUE(Mentions(found, "/dev/infiniband/rdma_cm is missing"));
  EXPECT_TRUE(Mentions(found, "/dev/infiniband/uverbs0 is missing"));
  EXPECT_TRUE(Mentions(found, "--device=/dev/infiniband"));
}

TEST_F(AdapterTest, ModulesCountOnlyWhereNothingWorks) {
  host_.Write("/proc/modules", "rdma_cm 1 1 - Live 0\n");
  EXPECT_EQ(Only(ProbeRdmaFiles(*host_), "kernel modules").level, Level::kOk);
  host_->rdma = absl::NotFoundError("no RDMA device here has an address");
  const Finding found = Only(ProbeRdmaFiles(*host_), "kernel modules");
  EXPECT_EQ(found.level, Level::kProblem);
  EXPECT_EQ(found.remedy, "modprobe -a ib_uverbs rdma_ucm");
}

TEST_F(AdapterTest, LockedMemoryIsMeasuredByWhatAConnectionLocks) {
  host_->locked_memory = 64 << 10;
  Finding found = Only(ProbeLockedMemory(*host_), "locked memory");
  EXPECT_EQ(found.level, Level::kProblem);
  EXPECT_NE(found.remedy.find("LimitMEMLOCK=infinity"), std::string::npos);
  host_->locked_memory = 8 << 20;
  found = Only(ProbeLockedMemory(*host_), "locked memory");
  EXPECT_EQ(found.level, Level::kNote);
  EXPECT_EQ(found.text, "8 MiB; a busy connection locks up to 64 MiB");
  host_->locked_memory = 64 << 20;
  EXPECT_EQ(Only(ProbeLockedMemory(*host_), "locked memory").level, Level::kOk);
}

TEST_F(AdapterTest, WithoutADeviceALowLimitOfLockedMemoryIsFine) {
  FakeHost none;
  none->locked_memory = 64 << 10;
  EXPECT_EQ(Only(ProbeLockedMemory(*none), "locked memory").level, Level::kOk);
}

TEST_F(AdapterTest, IpoibInterfacesAreNamedWithModeAndMtu) {
  host_.Write("/sys/class/net/ib0/type", "32\n");
  host_.Write("/sys/class/net/ib0/mode", "datagram\n");
  host_.Write("/sys/class/net/ib0/mtu", "2044\n");
  host_.Write("/sys/class/net/ib0/operstate", "up\n");
  host_.Write("/sys/class/net/eth0/type", "1\n");
  const Findings found = ProbeIpoib(*host_);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].text, "IPoIB, datagram mode, mtu 2044, up");
  host_.Write("/sys/class/net/ib0/operstate", "down\n");
  EXPECT_EQ(ProbeIpoib(*host_)[0].level, Level::kNote);
}

// Makes each file of the tree missing, empty, junk, huge or a pipe, one file at
// a time.
TEST_F(AdapterTest, WhateverTheFilesHoldTheFindingsArePrintable) {
  const std::string files[] = {
      absl::StrCat(kPort, "/state"),
      absl::StrCat(kPort, "/link_layer"),
      absl::StrCat(kPort, "/rate"),
      absl::StrCat(kPort, "/gids/0"),
      absl::StrCat(kPort, "/gid_attrs/ndevs/0"),
      "/sys/class/infiniband/mlx5_0/fw_ver",
      "/sys/class/infiniband/mlx5_0/parent",
      "/sys/class/net/ib0/type",
      "/proc/modules",
  };
  const std::string texts[] = {"", "\n\n", std::string("\0\x1b[31m\xff", 7),
                               std::string(1 << 20, 'x')};
  const auto check = [&](const std::string& what) {
    for (const Finding& each : ProbeAll(*host_)) {
      for (const std::string& text : {each.subject, each.text, each.remedy}) {
        EXPECT_LT(text.size(), 1000U) << what;
        for (const unsigned char letter : text) {
          EXPECT_TRUE(letter >= ' ' && letter < 127) << what;
        }
      }
    }
  };
  for (const std::string& file : files) {
    for (const std::string& text : texts) {
      host_.Write(file, text);
      check(file);
    }
    host_.MakeUnreadable(file);
    check(file);
    host_.MakePipe(file);
    check(file);
    host_.Remove(file);
    check(file);
  }
}

TEST_F(AdapterTest, NamesOfDevicesCannotControlTheTerminal) {
  host_.Write("/sys/class/infiniband/a\x1b[31m/ports/1\n2/state", "1: DOWN\n");
  for (const Finding& each : ProbeDevices(*host_)) {
    EXPECT_EQ(each.subject.find('\x1b'), std::string::npos);
    EXPECT_EQ(each.subject.find('\n'), std::string::npos);
  }
}

TEST_F(AdapterTest, ThousandsOfDevicesAreCut) {
  for (int i = 0; i < 2000; ++i) {
    host_.Write(absl::StrCat("/sys/class/infiniband/d", i, "/fw_ver"), "1\n");
  }
  EXPECT_LT(ProbeDevices(*host_).size(), 4 * Files::kMaxEntries);
}

}  // namespace
}  // namespace penstock::cli
