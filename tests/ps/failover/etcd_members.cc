#include "tests/ps/failover/etcd_members.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/ps/etcd/real_etcd.h"

namespace penstock::ps {
namespace {

constexpr int kClients = 2379;
constexpr int kPeers = 2380;

}  // namespace

EtcdMembers::EtcdMembers(const Network& network, size_t first_host,
                         size_t members, std::string folder)
    : network_(network),
      first_host_(first_host),
      folder_(std::move(folder)),
      processes_(members) {
  for (size_t member = 0; member < members; ++member) Start(member);
}

std::string EtcdMembers::addresses() const {
  std::vector<std::string> all;
  for (size_t member = 0; member < members(); ++member) {
    all.push_back(
        absl::StrCat(Network::AddressOf(HostOf(member)), ":", kClients));
  }
  return absl::StrJoin(all, ",");
}

void EtcdMembers::Start(size_t member) {
  const auto url = [this](size_t each, int port) {
    return absl::StrCat("http://", Network::AddressOf(HostOf(each)), ":", port);
  };
  std::vector<std::string> all;
  for (size_t each = 0; each < members(); ++each) {
    all.push_back(absl::StrCat("e", each, "=", url(each, kPeers)));
  }
  std::vector<std::string> command = network_.Enter(HostOf(member));
  for (std::string& word : std::vector<std::string>{
           etcd::RealEtcd::Program(),
           absl::StrCat("--name=e", member),
           absl::StrCat("--data-dir=", folder_, "/e", member),
           "--listen-client-urls=" + url(member, kClients),
           "--advertise-client-urls=" + url(member, kClients),
           "--listen-peer-urls=" + url(member, kPeers),
           "--initial-advertise-peer-urls=" + url(member, kPeers),
           "--initial-cluster=" + absl::StrJoin(all, ","),
           "--logger=zap",
           "--log-level=error",
           "--log-outputs=" + folder_ + "/log",
       }) {
    command.push_back(std::move(word));
  }
  processes_[member] = nullptr;
  processes_[member] = process::Child::Start(std::move(command));
  EXPECT_NE(processes_[member], nullptr);
}

}  // namespace penstock::ps
