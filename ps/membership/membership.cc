#include "ps/membership/membership.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/membership/members.h"
#include "ps/membership/target.h"
#include "transport/base/steady_time.h"

namespace penstock::ps::membership {
namespace {

// Limits the pause between two calls of `interrupted` while etcd is
// unreachable.
constexpr absl::Duration kAskEvery = absl::Seconds(1);

uint64_t RandomIncarnation() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

std::string HostName() {
  char host[HOST_NAME_MAX + 1] = {};
  gethostname(host, sizeof(host) - 1);
  return host;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Membership>> Membership::Open(
    absl::string_view target, absl::Duration timeout,
    const std::function<bool()>& interrupted) {
  const auto parsed = ParseTarget(target);
  if (!parsed.ok()) return parsed.status();
  auto options = ClientOptions(parsed->endpoints);
  if (!options.ok()) return options.status();
  std::unique_ptr<Membership> membership(new Membership(*std::move(options)));
  absl::Status status =
      membership->OpenRegistry(parsed->prefix, timeout, interrupted);
  if (!status.ok()) return status;
  return membership;
}

absl::Status Membership::OpenRegistry(
    const std::string& prefix, absl::Duration timeout,
    const std::function<bool()>& interrupted) {
  const absl::Time limit = base::SteadyNow() + timeout;
  while (true) {
    // Try again. The client uses the next endpoint each time.
    const absl::Duration left = limit - base::SteadyNow();
    auto registry = Registry::Open(
        &client_, prefix, interrupted ? std::min(left, kAskEvery) : left);
    if (registry.ok()) {
      registry_ = *std::move(registry);
      return absl::OkStatus();
    }
    if (interrupted && interrupted()) {
      return absl::CancelledError("the wait for etcd was interrupted");
    }
    if (!absl::IsUnavailable(registry.status()) ||
        base::SteadyNow() + kAskEvery >= limit) {
      return registry.status();
    }
  }
}

absl::Status Membership::Register(Registration::Options options,
                                  std::function<void(const std::string&)> log,
                                  etcd::Cancel* cancel) {
  if (registration_ != nullptr) {
    return absl::FailedPreconditionError("this process has registered already");
  }
  options.log = std::move(log);
  auto registered = Registration::Register(std::move(options), cancel);
  if (!registered.ok()) return registered.status();
  registration_ = *std::move(registered);
  return absl::OkStatus();
}

absl::Status Membership::RegisterServer(
    v1::Server server, absl::Duration time_to_live,
    std::function<void(const std::string&)> log, etcd::Cancel* cancel) {
  if (server.incarnation() == 0) server.set_incarnation(RandomIncarnation());
  auto options = ServerOptions(registry_.get(), server);
  if (!options.ok()) return options.status();
  options->time_to_live = time_to_live;
  return Register(*std::move(options), std::move(log), cancel);
}

absl::Status Membership::RegisterWorker(
    uint32_t rank, std::function<void(const std::string&)> log) {
  v1::Worker worker;
  worker.set_rank(rank);
  worker.set_incarnation(RandomIncarnation());
  worker.set_host(HostName());
  return Register(WorkerOptions(registry_.get(), worker), std::move(log),
                  /*cancel=*/nullptr);
}

absl::StatusOr<std::vector<std::string>> Membership::AwaitServers(
    absl::Duration timeout, const std::function<bool()>& interrupted) {
  const auto servers =
      membership::AwaitServers(registry_.get(), timeout, interrupted);
  if (!servers.ok()) return servers.status();
  std::vector<std::string> addresses;
  for (const v1::Server& server : *servers) {
    addresses.push_back(server.address());
  }
  return addresses;
}

absl::StatusOr<std::vector<std::string>> FindServers(
    const std::vector<std::string>& names, absl::Duration timeout,
    const std::function<bool()>& interrupted) {
  bool has_target = false;
  for (const std::string& name : names) has_target |= IsTarget(name);
  if (!has_target) return names;
  if (names.size() > 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "name either servers or one ", kScheme,
        "HOST:2379/PREFIX; several endpoints of etcd stand in one target, with "
        "commas"));
  }
  const absl::Time limit = base::SteadyNow() + timeout;
  const auto membership = Membership::Open(names.front(), timeout, interrupted);
  if (!membership.ok()) return membership.status();
  return (*membership)->AwaitServers(limit - base::SteadyNow(), interrupted);
}

}  // namespace penstock::ps::membership
