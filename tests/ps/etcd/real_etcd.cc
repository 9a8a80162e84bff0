#include "tests/ps/etcd/real_etcd.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace penstock::ps::etcd {
namespace {

// BUILD defines the path, or "" if etcd is not installed.
constexpr char kProgram[] = ETCD_PROGRAM;

// Returns the address from the line of etcd's log that says where etcd serves.
absl::optional<std::string> AddressOf(process::Child* process) {
  constexpr char kServes[] = "\"msg\":\"serving client traffic";
  constexpr char kAddress[] = "\"address\":\"";
  while (const auto line = process->Find("{")) {
    if (line->find(kServes) == std::string::npos) continue;
    const size_t begin = line->find(kAddress) + sizeof(kAddress) - 1;
    return line->substr(begin, line->find('"', begin) - begin);
  }
  return absl::nullopt;
}

}  // namespace

bool RealEtcd::IsInstalled() { return kProgram[0] != '\0'; }

std::string RealEtcd::Program() { return kProgram; }

std::unique_ptr<RealEtcd> RealEtcd::Start(
    const std::vector<std::string>& arguments, const std::string& scheme) {
  static int started = 0;
  const std::string any = scheme + "://127.0.0.1:0";
  const std::string any_peer = "http://127.0.0.1:0";
  std::vector<std::string> command = {
      kProgram,
      absl::StrCat("--data-dir=", testing::TempDir(), "/etcd-", getpid(), "-",
                   ++started),
      "--listen-client-urls=" + any,
      "--advertise-client-urls=" + any,
      "--listen-peer-urls=" + any_peer,
      "--initial-advertise-peer-urls=" + any_peer,
      "--initial-cluster=default=" + any_peer,
      // Makes elections short, because the lease can be no shorter.
      "--heartbeat-interval=10",
      "--election-timeout=100",
      "--logger=zap",
      "--log-outputs=stderr",
  };
  command.insert(command.end(), arguments.begin(), arguments.end());
  auto process = process::Child::Start(std::move(command));
  if (process == nullptr) return nullptr;
  const auto address = AddressOf(process.get());
  if (!address) return nullptr;
  return std::unique_ptr<RealEtcd>(new RealEtcd(std::move(process), *address));
}

}  // namespace penstock::ps::etcd
