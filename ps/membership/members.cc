#include "ps/membership/members.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ps/etcd/mirror.h"
#include "ps/membership/keys.h"
#include "transport/base/printable.h"
#include "transport/base/steady_time.h"

namespace penstock::ps::membership {
namespace {

constexpr absl::Duration kAskEvery = absl::Milliseconds(100);
constexpr size_t kMaxAddressBytes = 512;

bool IsDigit(char c) {
  return absl::ascii_isdigit(static_cast<unsigned char>(c));
}

// Removes and returns the number at the front of `text`, without leading zeros.
absl::string_view TakeNumber(absl::string_view* text) {
  const auto end = std::find_if_not(text->begin(), text->end(), IsDigit);
  absl::string_view number =
      text->substr(0, static_cast<size_t>(end - text->begin()));
  text->remove_prefix(number.size());
  while (number.size() > 1 && number.front() == '0') number.remove_prefix(1);
  return number;
}

std::string Describe(const v1::Server& server) {
  return absl::StrCat(base::Printable(server.name(), kMaxNameBytes), " (",
                      base::Printable(server.address(), kMaxAddressBytes), ")");
}

absl::Status Disagree(const v1::Server& a, const v1::Server& b,
                      absl::string_view what) {
  return absl::FailedPreconditionError(absl::StrCat(
      "servers ", Describe(a), " and ", Describe(b), " ", what,
      ": give all servers of a training the same --servers and --replicas, and "
      "each training its own prefix"));
}

absl::Status CheckServer(const v1::Server& server) {
  absl::Status status = CheckServerName(server.name());
  if (!status.ok()) return status;
  if (server.address().empty() || server.address().size() > kMaxAddressBytes) {
    return absl::InvalidArgumentError(absl::StrCat("server ", server.name(),
                                                   ": its address needs 1 to ",
                                                   kMaxAddressBytes, " bytes"));
  }
  if (server.servers() < 1 || server.servers() > kMaxServers) {
    return absl::InvalidArgumentError(
        absl::StrCat("server ", server.name(), ": --servers=", server.servers(),
                     " is not from 1 to ", kMaxServers));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<v1::Server>> RegisteredServers(
    const etcd::Values& values, const std::string& prefix) {
  std::vector<v1::Server> servers;
  for (const auto& [key, value] : values) {
    if (!absl::StartsWith(key, prefix + kServers)) continue;
    v1::Server server;
    if (!server.ParseFromString(value.value()) || !CheckServer(server).ok() ||
        key != prefix + ServerKey(server.name())) {
      return absl::FailedPreconditionError(absl::StrCat(
          base::Printable(key, kMaxNameBytes),
          " in etcd is no server of this "
          "release of Penstock: use another prefix, or delete that key"));
    }
    servers.push_back(std::move(server));
  }
  std::sort(servers.begin(), servers.end(),
            [](const v1::Server& a, const v1::Server& b) {
              return IsBefore(a.name(), b.name());
            });
  return servers;
}

absl::Status CheckAgreement(const std::vector<v1::Server>& servers) {
  std::map<std::string, const v1::Server*> by_address;
  for (const v1::Server& server : servers) {
    if (server.servers() != servers.front().servers()) {
      return Disagree(
          servers.front(), server,
          absl::StrCat("say that there are ", servers.front().servers(),
                       " and ", server.servers(), " servers"));
    }
    if (server.replicas() != servers.front().replicas()) {
      return Disagree(servers.front(), server,
                      absl::StrCat("want ", servers.front().replicas(), " and ",
                                   server.replicas(), " replicas"));
    }
    const auto [other, is_new] = by_address.insert({server.address(), &server});
    if (!is_new) return Disagree(*other->second, server, "have one address");
  }
  if (!servers.empty() && servers.size() > servers.front().servers()) {
    return Disagree(servers.front(), servers.back(),
                    absl::StrCat("are two of ", servers.size(),
                                 " servers, but all say "
                                 "that there are ",
                                 servers.front().servers()));
  }
  return absl::OkStatus();
}

namespace {

// Returns true if no server is missing. Requires that the servers agree on
// their number.
bool AreAll(const std::vector<v1::Server>& servers) {
  return !servers.empty() && servers.size() == servers.front().servers();
}

// Returns true if waiting cannot resolve the error.
bool IsFinal(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status) ||
         absl::IsDataLoss(status);
}

// Returns the servers that are registered now, in order.
absl::StatusOr<std::vector<v1::Server>> ReadServers(const Registry& registry) {
  const std::string& prefix = registry.prefix();
  const auto read =
      registry.client()->ReadPrefix(prefix + kServers, Registry::kTimeout);
  if (!read.ok()) return read.status();
  etcd::Copy copy;
  copy.Read(*read);
  return RegisteredServers(copy.values(), prefix);
}

// Returns the servers if all of them are registered now. Otherwise returns an
// error that names the missing ones.
absl::StatusOr<std::vector<v1::Server>> LastLook(const Registry& registry) {
  const std::string& prefix = registry.prefix();
  auto servers = ReadServers(registry);
  if (!servers.ok()) return servers.status();
  absl::Status agreement = CheckAgreement(*servers);
  if (!agreement.ok()) return agreement;
  if (AreAll(*servers)) return servers;
  if (servers->empty()) {
    return absl::DeadlineExceededError(absl::StrCat(
        "no server is registered under ", prefix,
        " in etcd: start the servers with the same --etcd and --etcd-prefix. "
        "If they run, etcd was wiped, or they do not reach it: ask the servers "
        "themselves, by penstock ps status HOST:PORT..."));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      servers->size(), " of ", servers->front().servers(),
      " servers are registered under ", prefix, " in etcd: ",
      absl::StrJoin(*servers, ", ",
                    [](std::string* out, const v1::Server& server) {
                      absl::StrAppend(out, Describe(server));
                    }),
      ". Start the others"));
}

// Returns the servers of the newest view, in order. Returns nullopt if no
// registered server is in the view, because the view is then of an earlier
// training. A server that no longer runs has only an address in the result. A
// registered server that is not in the view is a spare.
absl::optional<std::vector<v1::Server>> ServersOfView(
    const etcd::Values& values, const std::string& prefix) {
  const auto registered = RegisteredServers(values, prefix);
  const auto found = values.find(prefix + kView);
  v1::View view;
  if (!registered.ok() || found == values.end() ||
      !view.ParseFromString(found->second.value()) ||
      view.incarnations().size() != view.servers().size()) {
    return absl::nullopt;
  }
  bool is_of_these = false;
  std::vector<v1::Server> servers;
  for (int i = 0; i < view.servers().size(); ++i) {
    v1::Server server;
    server.set_address(view.servers(i));
    for (const v1::Server& each : *registered) {
      if (each.address() != server.address()) continue;
      server = each;
      is_of_these |= view.incarnations(i) != 0 &&
                     each.incarnation() == view.incarnations(i);
    }
    servers.push_back(std::move(server));
  }
  if (!is_of_these) return absl::nullopt;
  return servers;
}

}  // namespace

absl::StatusOr<Registration::Options> ServerOptions(Registry* registry,
                                                    const v1::Server& server) {
  absl::Status status = CheckServer(server);
  if (!status.ok()) return status;
  Registration::Options options;
  options.registry = registry;
  options.key = ServerKey(server.name());
  options.value = server.SerializeAsString();
  options.name = absl::StrCat("server ", server.name());
  options.describe = [](const std::string& value) {
    v1::Server owner;
    owner.ParseFromString(value);
    return absl::StrCat("the server at ",
                        base::Printable(owner.address(), kMaxAddressBytes));
  };
  return options;
}

Registration::Options WorkerOptions(Registry* registry,
                                    const v1::Worker& worker) {
  Registration::Options options;
  options.registry = registry;
  options.key = WorkerKey(worker.rank());
  options.value = worker.SerializeAsString();
  options.name = absl::StrCat("worker ", worker.rank(),
                              worker.rank() == 0 ? " (the chief)" : "");
  options.describe = [](const std::string& value) {
    v1::Worker owner;
    owner.ParseFromString(value);
    return absl::StrCat("a process on host ",
                        base::Printable(owner.host(), kMaxNameBytes));
  };
  return options;
}

bool IsBefore(absl::string_view a, absl::string_view b) {
  const absl::string_view all_a = a;
  const absl::string_view all_b = b;
  while (!a.empty() && !b.empty()) {
    if (IsDigit(a.front()) && IsDigit(b.front())) {
      const absl::string_view x = TakeNumber(&a);
      const absl::string_view y = TakeNumber(&b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return all_a < all_b;  // ps-1 and ps-01
}

absl::StatusOr<absl::optional<std::vector<v1::Server>>> CompleteServers(
    const etcd::Values& values, const std::string& prefix) {
  auto servers = RegisteredServers(values, prefix);
  if (!servers.ok()) return servers.status();
  absl::Status status = CheckAgreement(*servers);
  if (!status.ok()) return status;
  absl::optional<std::vector<v1::Server>> complete;
  if (AreAll(*servers)) complete = *std::move(servers);
  return complete;
}

absl::StatusOr<std::vector<v1::Server>> AwaitServers(
    Registry* registry, absl::Duration timeout,
    const std::function<bool()>& interrupted) {
  const absl::Time limit = base::SteadyNow() + timeout;
  const std::string& prefix = registry->prefix();
  etcd::Mirror mirror(registry->client(), prefix);
  absl::optional<std::vector<v1::Server>> servers;
  const auto are_complete = [&](const etcd::Values& values) {
    servers = ServersOfView(values, prefix);
    auto complete = CompleteServers(values, prefix);
    if (!servers && complete.ok()) servers = *std::move(complete);
    return servers.has_value();
  };
  do {
    const absl::Time next = std::min(limit, base::SteadyNow() + kAskEvery);
    if (mirror.Await(are_complete, next)) return *std::move(servers);
    if (interrupted && interrupted()) {
      return absl::CancelledError("the wait for servers was interrupted");
    }
    // Queries all endpoints, because the mirror has queried only one.
    if (IsFinal(mirror.status())) {
      absl::Status status = ReadServers(*registry).status();
      if (IsFinal(status)) return status;
    }
  } while (base::SteadyNow() < limit);
  return LastLook(*registry);
}

}  // namespace penstock::ps::membership
