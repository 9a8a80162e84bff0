#include "ps/views/view_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ps/membership/keys.h"
#include "ps/membership/members.h"
#include "ps/membership/moves.h"
#include "ps/replication/view_wire.h"

namespace penstock::ps::views {
namespace {

absl::Status NoView(const std::string& key) {
  return absl::InvalidArgumentError(
      absl::StrCat(key,
                   " in etcd is no view of this release of Penstock: use "
                   "another prefix, or delete that key"));
}

}  // namespace

absl::StatusOr<Registered> ReadRegistered(
    const etcd::Values& values, const std::string& prefix,
    const std::vector<std::string>& known) {
  const auto all = membership::RegisteredServers(values, prefix);
  if (!all.ok()) return all.status();
  Registered registered;
  std::vector<membership::v1::Server> servers;
  for (const membership::v1::Server& server : *all) {
    const bool is_known =
        known.empty() ||
        std::find(known.begin(), known.end(), server.address()) != known.end();
    if (is_known) servers.push_back(server);
    (is_known ? registered.live : registered.strangers)
        .push_back({server.address(), server.incarnation()});
  }
  absl::Status agreement = membership::CheckAgreement(servers);
  if (!agreement.ok()) return agreement;
  registered.are_all =
      !servers.empty() && servers.size() == servers.front().servers();
  return registered;
}

absl::StatusOr<replication::MoveRequests> ReadMoveRequests(
    const etcd::Values& values, const std::string& prefix,
    const std::vector<std::string>& servers) {
  const auto wanted = membership::ReadWanted(values, prefix);
  if (!wanted.ok()) return wanted.status();
  replication::MoveRequests requests;
  requests.own_servers = servers;
  requests.to_own_servers = wanted->to_own_servers;
  for (const membership::v1::Server& server : wanted->leaving) {
    requests.leaving.push_back({server.address(), server.incarnation()});
  }
  return requests;
}

absl::Status NewestView::Take(const etcd::Values& values,
                              const std::string& prefix) {
  const std::string key = prefix + membership::kView;
  const auto found = values.find(key);
  if (found == values.end()) return absl::OkStatus();
  membership::v1::View numbered;
  if (!numbered.ParseFromString(found->second.value())) return NoView(key);
  if (numbered.number() == newest_.view().number() &&
      numbered.decision() == newest_.view().decision()) {
    return absl::OkStatus();
  }
  auto view = replication::FromBytes(numbered.decision());
  if (!view.ok()) return view.status();
  if (view->number != numbered.number() ||
      view->shards.size() != static_cast<size_t>(numbered.servers().size())) {
    return NoView(key);
  }
  absl::Status status = newest_.Take(numbered);
  if (!status.ok()) return status;
  view_ = *std::move(view);
  servers_.assign(numbered.servers().begin(), numbered.servers().end());
  return absl::OkStatus();
}

}  // namespace penstock::ps::views
