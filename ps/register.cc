#include "ps/register.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "ps/membership/keys.h"
#include "ps/membership/target.h"
#include "transport/base/log.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

// The pause between two attempts. Each attempt also waits for etcd.
constexpr absl::Duration kPause = absl::Seconds(1);
constexpr absl::Duration kWarnEvery = absl::Minutes(1);

}  // namespace

absl::Status EtcdFlags::Check() const {
  if (endpoints.empty()) return absl::OkStatus();
  const absl::Status status = membership::ParseEndpoints(endpoints).status();
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--etcd: ", status.message(),
        ". Give HOST:PORT[,HOST:PORT...], and the prefix in --etcd-prefix"));
  }
  const bool is_unix = absl::StartsWith(advertise, "unix:");
  if (!advertise.empty() && !is_unix &&
      !membership::HasHostAndPort(advertise)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--advertise=", advertise, " is not HOST:PORT"));
  }
  if (replicas > 0 && replicas >= servers) {
    return absl::InvalidArgumentError(
        absl::StrCat("--replicas=", replicas, " needs --servers=", replicas + 1,
                     " or more, and there are ", servers,
                     ": each backup of a shard needs another server"));
  }
  return membership::CheckPrefix(prefix);
}

ServerRegistration::ServerRegistration(
    EtcdFlags flags, const std::string& address, bool quiet,
    const Replicas& replicas, std::function<void(const absl::Status&)> ended)
    : flags_(std::move(flags)),
      address_(flags_.advertise.empty() ? address : flags_.advertise),
      is_quiet_(quiet),
      replicas_(replicas),
      ended_(std::move(ended)) {
  if (flags_.endpoints.empty()) {
    ended_(absl::OkStatus());
  } else {
    thread_ = std::thread([this] { ThreadLoop(); });
  }
}

ServerRegistration::~ServerRegistration() {
  cancel_.Now();
  if (thread_.joinable()) thread_.join();
}

void ServerRegistration::ThreadLoop() {
  absl::Status status = Register();
  while (absl::IsUnavailable(status)) {
    Warn(status);
    if (!cancel_.WaitUntil(base::SteadyNow() + kPause)) return;
    status = Register();
  }
  if (!cancel_.is_cancelled()) ended_(status);
}

absl::Status ServerRegistration::Register() {
  const std::string target =
      absl::StrCat(membership::kScheme, flags_.endpoints, "/", flags_.prefix);
  auto member =
      membership::Membership::Open(target, membership::Registry::kTimeout,
                                   [this] { return cancel_.is_cancelled(); });
  if (!member.ok()) return member.status();
  membership::v1::Server server;
  server.set_name(flags_.name.empty() ? address_ : flags_.name);
  server.set_address(address_);
  server.set_servers(flags_.servers);
  server.set_replicas(flags_.replicas);
  absl::Duration time_to_live =
      membership::Registration::Options().time_to_live;
  if (replicas_.follower != nullptr) {
    server.set_incarnation(replicas_.follower->self().incarnation);
    time_to_live = views::kTimeToLive;
  }
  absl::Status status = (*member)->RegisterServer(
      server, time_to_live,
      [](const std::string& line) { base::LogWarning("ps: " + line); },
      &cancel_);
  if (!status.ok()) return status;
  member_ = *std::move(member);
  if (replicas_.follower != nullptr) KeepViews();
  if (!is_quiet_) {
    base::LogInfo(absl::StrCat("ps: registered in etcd, as one of ",
                               flags_.servers,
                               " servers: workers find them by ", target));
  }
  return status;
}

void ServerRegistration::KeepViews() {
  views::Keeping::Options options;
  options.member = member_.get();
  options.follower = replicas_.follower;
  options.board = replicas_.board;
  options.backups = flags_.replicas;
  options.log = [quiet = is_quiet_](const std::string& line) {
    if (!quiet) base::LogInfo("ps: " + line);
  };
  views_ = std::make_unique<views::Keeping>(options);
}

void ServerRegistration::Warn(const absl::Status& status) {
  if (base::SteadyNow() < next_warning_) return;
  next_warning_ = base::SteadyNow() + kWarnEvery;
  base::LogWarning(
      absl::StrCat("ps: serves, but is not registered yet, and "
                   "keeps trying: ",
                   status.message()));
}

}  // namespace penstock::ps
