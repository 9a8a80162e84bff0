#include "ps/membership/registration.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/steady_time.h"

namespace penstock::ps::membership {
namespace {

// The number of renewals within the time of a lease. With three, a lease
// survives two lost renewals.
constexpr int kRenewalsPerLease = 3;
constexpr absl::Duration kGoodByeTimeout = absl::Seconds(1);
// The interval of the warning that another process has the name.
constexpr absl::Duration kWarnEvery = absl::Minutes(1);
constexpr absl::Duration kTryEvery = absl::Milliseconds(250);
// The minimal timeout of a renewal, even if the lease is short.
constexpr absl::Duration kMinTimeout = absl::Seconds(1);

}  // namespace

absl::Status Registration::WriteKey(const Options& options, int64_t lease,
                                    etcd::Cancel* cancel) {
  auto written =
      options.registry->Write(options.key, options.value,
                              /*revision=*/0, lease, absl::nullopt, cancel);
  if (!written.ok()) return written.status();
  const auto& found = written->found;
  if (found && found->bytes == options.value && found->lease != lease) {
    // Accepts the key, because this process wrote it with an earlier lease.
    const int64_t revision = found->revision;
    written = options.registry->Write(options.key, options.value, revision,
                                      lease, absl::nullopt, cancel);
    if (!written.ok()) return written.status();
  }
  if (written->is_done) return absl::OkStatus();
  if (found && found->bytes == options.value && found->lease == lease) {
    // Returns OK, because the first write succeeded and only its answer was
    // lost.
    return absl::OkStatus();
  }
  return absl::AlreadyExistsError(absl::StrCat(
      options.name, " is taken, by ",
      found ? options.describe(found->bytes) : "another process",
      ": names must be unique. If that process was killed, its name is free "
      "once its lease has ended"));
}

absl::StatusOr<Registration::Claim> Registration::ClaimKey(
    const Options& options, etcd::Cancel* cancel) {
  etcd::Client* const client = options.registry->client();
  const absl::Time asked = base::SteadyNow();
  const auto lease =
      client->GrantLease(options.time_to_live, Registry::kTimeout, cancel);
  if (!lease.ok()) return lease.status();
  absl::Status status = WriteKey(options, *lease, cancel);
  if (!status.ok()) {
    client->RevokeLease(*lease, kGoodByeTimeout, cancel).IgnoreError();
    return status;
  }
  return Claim{*lease, asked + options.time_to_live};
}

absl::StatusOr<std::unique_ptr<Registration>> Registration::Register(
    Options options, etcd::Cancel* cancel) {
  const absl::Time limit = base::SteadyNow() + options.patience;
  etcd::Cancel never;
  if (cancel == nullptr) cancel = &never;
  while (true) {
    const auto claim = ClaimKey(options, cancel);
    if (claim.ok()) {
      return std::unique_ptr<Registration>(
          new Registration(std::move(options), *claim));
    }
    const bool may_pass = absl::IsAlreadyExists(claim.status()) ||
                          absl::IsUnavailable(claim.status());
    if (!may_pass || base::SteadyNow() >= limit) return claim.status();
    if (!cancel->WaitUntil(base::SteadyNow() + kTryEvery)) {
      return absl::CancelledError("etcd: cancelled");
    }
  }
}

Registration::Registration(Options options, const Claim& claim)
    : options_(std::move(options)),
      claim_(claim),
      thread_([this] { ThreadLoop(); }) {}

Registration::~Registration() {
  cancel_.Now();
  thread_.join();
  int64_t lease;
  {
    absl::MutexLock lock(&mu_);
    lease = claim_.lease;
  }
  options_.registry->client()
      ->RevokeLease(lease, kGoodByeTimeout)
      .IgnoreError();
}

absl::Status Registration::status() const {
  absl::MutexLock lock(&mu_);
  return status_;
}

Registry::Guard Registration::guard() const {
  absl::MutexLock lock(&mu_);
  return {options_.key, claim_.lease, {}, 0};
}

absl::Time Registration::valid_until() const {
  absl::MutexLock lock(&mu_);
  return claim_.until;
}

void Registration::SetClaim(const Claim& claim) {
  absl::MutexLock lock(&mu_);
  claim_ = claim;
}

void Registration::SetStatus(const absl::Status& status) {
  {
    absl::MutexLock lock(&mu_);
    const absl::Time now = base::SteadyNow();
    const bool is_news =
        status_.code() != status.code() ||
        (absl::IsAlreadyExists(status) && now >= logged_ + kWarnEvery);
    status_ = status;
    if (!is_news) return;
    logged_ = now;
  }
  if (!options_.log) return;
  options_.log(status.ok()
                   ? absl::StrCat("etcd: ", options_.name, " is registered")
                   : absl::StrCat("etcd: ", options_.name,
                                  " continues: ", status.message()));
}

absl::Duration Registration::PauseAfter(const absl::Status& status,
                                        absl::Duration left,
                                        absl::Duration time_to_live) {
  const absl::Duration usual = time_to_live / kRenewalsPerLease;
  const bool can_save =
      absl::IsUnavailable(status) && left > absl::ZeroDuration();
  return can_save ? std::min(usual, kTryEvery) : usual;
}

void Registration::ThreadLoop() {
  absl::Status status;
  while (true) {
    const absl::Time now = base::SteadyNow();
    const absl::Duration pause =
        PauseAfter(status, valid_until() - now, options_.time_to_live);
    if (!cancel_.WaitUntil(now + pause)) return;
    status = Renew();
    if (cancel_.is_cancelled()) return;
    SetStatus(status);
  }
}

absl::Status Registration::Renew() {
  const int64_t lease = guard().lease;
  const absl::Time asked = base::SteadyNow();
  const absl::Duration timeout =
      std::max(kMinTimeout, options_.time_to_live / kRenewalsPerLease);
  const auto kept =
      options_.registry->client()->KeepLeaseAlive(lease, timeout, &cancel_);
  if (!kept.ok() && !absl::IsNotFound(kept.status())) return kept.status();
  if (kept.ok()) {
    SetClaim({lease, asked + *kept});
    // Also reads the key, because another process may have deleted the key
    // while the lease is valid.
    const auto value = options_.registry->Read(options_.key, &cancel_, timeout);
    if (!value.ok()) return value.status();
    if (value->has_value() && (*value)->lease == lease) {
      return absl::OkStatus();
    }
    absl::Status status = WriteKey(options_, lease, &cancel_);
    if (!status.ok()) SetClaim({lease, absl::InfinitePast()});
    return status;
  }
  SetClaim({lease, absl::InfinitePast()});
  const auto claim = ClaimKey(options_, &cancel_);
  if (!claim.ok()) return claim.status();
  SetClaim(*claim);
  if (options_.log) {
    options_.log(absl::StrCat("etcd: the lease of ", options_.name,
                              " had ended, so that others may have taken this "
                              "process for dead. It has a new lease now"));
  }
  return absl::OkStatus();
}

}  // namespace penstock::ps::membership
