#include "tests/cli/fake_host.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "transport/fabric/verbs/locked_memory.h"

namespace penstock::cli {

namespace fs = std::filesystem;

FakeHost::FakeHost() {
  std::string name = absl::StrCat(testing::TempDir(), "/host.XXXXXX");
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  root_ = name;
  host_.files = Files(root_);
  host_.grpc_built_for = host_.grpc_loaded = "1.51.1";
  host_.locked_memory = fabric::verbs::kUnlimited;
  host_.open_files = host_.open_files_hard = 4096;
  host_.cores = host_.usable_cores = 8;
  host_.trials = {{"shm", absl::OkStatus()},
                  {"verbs", absl::NotFoundError("no RDMA device here")}};
}

FakeHost::~FakeHost() {
  std::error_code ignored;
  fs::remove_all(root_, ignored);
}

void FakeHost::Write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(root_ + path).parent_path());
  std::ofstream(root_ + path, std::ios::binary) << text;
}

void FakeHost::Link(const std::string& path, const std::string& target) {
  fs::create_directories(fs::path(root_ + path).parent_path());
  fs::create_symlink(target, root_ + path);
}

void FakeHost::MakeUnreadable(const std::string& path) {
  Remove(path);
  fs::create_directories(root_ + path);
}

void FakeHost::MakePipe(const std::string& path) {
  Remove(path);
  fs::create_directories(fs::path(root_ + path).parent_path());
  EXPECT_EQ(mkfifo((root_ + path).c_str(), 0600), 0);
}

void FakeHost::Remove(const std::string& path) { fs::remove_all(root_ + path); }

void FakeHost::AddAdapter() {
  const std::string device = "/sys/class/infiniband/mlx5_0";
  const std::string port = device + "/ports/1";
  Write(device + "/fw_ver", "22.35.1012\n");
  Link(device + "/device/driver", "../../../bus/pci/drivers/mlx5_core");
  Write(port + "/state", "4: ACTIVE\n");
  Write(port + "/link_layer", "Ethernet\n");
  Write(port + "/rate", "100 Gb/sec (4X EDR)\n");
  Write(port + "/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n");
  Write(port + "/gids/1", "0000:0000:0000:0000:0000:ffff:0a00:0001\n");
  Write(port + "/gids/2", "0000:0000:0000:0000:0000:0000:0000:0000\n");
  Write(port + "/gid_attrs/ndevs/0", "eth2\n");
  Write("/sys/class/infiniband_verbs/abi_version", "6\n");
  Write("/sys/class/infiniband_verbs/uverbs0/ibdev", "mlx5_0\n");
  Write("/dev/infiniband/uverbs0", "");
  Write("/dev/infiniband/rdma_cm", "");
  Write("/proc/modules",
        "rdma_ucm 32768 0 - Live 0\nrdma_cm 1 1 rdma_ucm, Live 0\n"
        "ib_uverbs 2 2 - Live 0\n");
}

void FakeHost::AddAddress() {
  fabric::verbs::LocalAddress local;
  local.address = "10.0.0.1";
  local.device = "mlx5_0";
  local.port = 1;
  local.description = "mlx5_0/1, GID 1, RoCE v2, mtu 4096";
  host_.rdma = std::vector<fabric::verbs::LocalAddress>{local};
  host_.trials["verbs"] = absl::OkStatus();
}

Finding Only(const Findings& findings, const std::string& subject) {
  Finding found;
  int count = 0;
  for (const Finding& each : findings) {
    if (each.subject != subject) continue;
    found = each;
    ++count;
  }
  EXPECT_EQ(count, 1) << subject;
  return found;
}

bool Mentions(const Findings& findings, const std::string& text) {
  for (const Finding& each : findings) {
    if (absl::StrContains(each.text, text) ||
        absl::StrContains(each.remedy, text)) {
      return true;
    }
  }
  return false;
}

}  // namespace penstock::cli
