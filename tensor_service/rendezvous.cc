#include "tensor_service/rendezvous.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock::tensor {
namespace {

absl::Time SteadyNow() {
  return absl::UnixEpoch() +
         absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

Rendezvous::Options WithClock(Rendezvous::Options options) {
  if (!options.clock) options.clock = &SteadyNow;
  return options;
}

// Keeps the reason's code, and says what it has ended.
absl::Status Ended(absl::string_view operation, const RendezvousKey& key,
                   const absl::Status& reason) {
  if (reason.ok()) return reason;
  return absl::Status(
      reason.code(),
      absl::StrCat(operation, " ", key.ToString(), ": ", reason.message()));
}

}  // namespace

Rendezvous::Rendezvous() : Rendezvous(Options()) {}

Rendezvous::Rendezvous(Options options)
    : options_(WithClock(std::move(options))),
      ended_(options_.max_ended_steps) {}

Rendezvous::~Rendezvous() {
  CancelAll(absl::CancelledError("the rendezvous is gone")).IgnoreError();
}

void Rendezvous::Due::Run() {
  for (auto& call : calls) call.first(std::move(call.second));
}

absl::Status Rendezvous::CheckSend(const RendezvousKey& key,
                                   const SendOptions& options) const {
  absl::Status valid = key.Check();
  if (!valid.ok()) return valid;
  if (options.receivers >= 1 && options.receivers <= kMaxReceivers) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("send ", key.ToString(), " to ", options.receivers,
                   " receivers: there must be 1 to ", kMaxReceivers));
}

bool Rendezvous::IsAwaited(const RendezvousKey& key, uint32_t receivers) const {
  absl::MutexLock lock(&mu_);
  const auto slot = slots_.find(key);
  return slot != slots_.end() && slot->second.waiters.size() >= receivers;
}

absl::Status Rendezvous::Send(const RendezvousKey& key, const Tensor& tensor,
                              const SendOptions& options) {
  absl::Status status = CheckSend(key, options);
  if (!status.ok()) return status;
  Received sent{tensor, options.is_dead};
  // Compact only what is to be kept, and not under the lock. If the receivers
  // go away in between, it is kept as it is, and counted as that.
  // A device's memory keeps nothing of a message.
  if (!IsAwaited(key, options.receivers) && tensor.device().is_host()) {
    absl::StatusOr<Tensor> compact = tensor.Compact();
    if (!compact.ok()) return compact.status();
    sent.tensor = *std::move(compact);
  }
  Due due;
  {
    absl::MutexLock lock(&mu_);
    SweepLocked(&due);
    status = SendLocked(key, sent, options.receivers, &due);
  }
  due.Run();
  return status;
}

absl::Status Rendezvous::SendLocked(const RendezvousKey& key,
                                    const Received& sent, uint32_t receivers,
                                    Due* due) {
  absl::Status ended = Ended("send", key, ended_.Check(key.step));
  if (!ended.ok()) return ended;
  const auto slot = slots_.find(key);
  size_t waiting = 0;
  if (slot != slots_.end()) {
    if (slot->second.receivers > 0) {
      return absl::AlreadyExistsError(absl::StrCat(
          "send ", key.ToString(), ": the tensor sent before still waits for ",
          slot->second.receivers, " receivers"));
    }
    waiting = slot->second.waiters.size();
  }
  const auto served =
      static_cast<uint32_t>(std::min(waiting, static_cast<size_t>(receivers)));
  const size_t bytes =
      kEntryBytes + key.name_bytes() + sent.tensor.held_bytes();
  if (served < receivers && bytes > options_.budget_bytes - bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "send ", key.ToString(), ": its ", bytes, " bytes and the ", bytes_,
        " of tensors that nobody has fetched exceed the budget of ",
        options_.budget_bytes, "; receive or end steps first, or raise it"));
  }
  for (uint32_t i = 0; i < served; ++i) {
    auto waiter = slot->second.waiters.begin();
    waiters_.erase(waiter->first);
    due->calls.emplace_back(std::move(waiter->second), sent);
    slot->second.waiters.erase(waiter);
  }
  if (served < receivers) {
    KeepLocked(key, sent, receivers - served, bytes);
  } else if (slot->second.waiters.empty()) {
    slots_.erase(slot);
  }
  return absl::OkStatus();
}

void Rendezvous::KeepLocked(const RendezvousKey& key, const Received& sent,
                            uint32_t receivers, size_t bytes) {
  const auto slot = slots_.emplace(key, Slot()).first;
  slot->second.kept = sent;
  slot->second.receivers = receivers;
  slot->second.bytes = bytes;
  slot->second.serial = next_number_++;
  bytes_ += bytes;
  // The limit is the same for all, so the order of the serials is that of the
  // ends.
  const absl::Time expires = options_.unfetched_limit == absl::ZeroDuration()
                                 ? absl::InfiniteFuture()
                                 : options_.clock() + options_.unfetched_limit;
  by_age_.emplace(slot->second.serial, Age{expires, slot});
}

uint64_t Rendezvous::Receive(const RendezvousKey& key, Callback callback) {
  absl::Status status = key.Check();
  uint64_t wait;
  Due due;
  {
    absl::MutexLock lock(&mu_);
    wait = next_number_++;
    SweepLocked(&due);
    if (status.ok()) status = ReceiveLocked(key, wait, &callback, &due);
  }
  due.Run();
  if (!status.ok()) callback(status);
  return wait;
}

absl::Status Rendezvous::ReceiveLocked(const RendezvousKey& key, uint64_t wait,
                                       Callback* callback, Due* due) {
  absl::Status ended = Ended("receive", key, ended_.Check(key.step));
  if (!ended.ok()) return ended;
  auto slot = slots_.find(key);
  if (slot != slots_.end() && slot->second.receivers > 0) {
    due->calls.emplace_back(std::move(*callback), slot->second.kept);
    if (--slot->second.receivers == 0) DropLocked(slot, due);
    return absl::OkStatus();
  }
  if (waiters_.size() >= options_.max_waiters) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "receive ", key.ToString(), ": ", waiters_.size(),
        " receives wait already, as many as may; send or cancel what they wait "
        "for, or raise max_waiters"));
  }
  if (slot == slots_.end()) slot = slots_.emplace(key, Slot()).first;
  slot->second.waiters.emplace(wait, std::move(*callback));
  waiters_.emplace(wait, slot);
  return absl::OkStatus();
}

absl::StatusOr<Rendezvous::Received> Rendezvous::Receive(
    const RendezvousKey& key, absl::Duration timeout) {
  // Shared, since set_value() may still run when get() has returned.
  auto promise = std::make_shared<std::promise<absl::StatusOr<Received>>>();
  std::future<absl::StatusOr<Received>> result = promise->get_future();
  const uint64_t wait =
      Receive(key, [promise](absl::StatusOr<Received> received) {
        promise->set_value(std::move(received));
      });
  // By a steady clock, unlike absl::CondVar. A day more makes no difference,
  // and cannot overflow.
  const absl::Duration most = std::min(timeout, absl::Hours(24 * 365));
  if (result.wait_for(absl::ToChronoNanoseconds(most)) !=
      std::future_status::ready) {
    Cancel(wait, absl::DeadlineExceededError(absl::StrCat(
                     "nothing was sent within ", absl::FormatDuration(most))));
  }
  return result.get();
}

bool Rendezvous::Cancel(uint64_t wait, const absl::Status& reason) {
  Callback callback;
  RendezvousKey key;
  {
    absl::MutexLock lock(&mu_);
    const auto found = waiters_.find(wait);
    if (found == waiters_.end()) return false;
    const auto slot = found->second;
    const auto waiter = slot->second.waiters.find(wait);
    callback = std::move(waiter->second);
    key = slot->first;
    slot->second.waiters.erase(waiter);
    waiters_.erase(found);
    if (slot->second.waiters.empty()) slots_.erase(slot);
  }
  callback(Ended(
      "receive", key,
      reason.ok() ? absl::CancelledError("the wait was cancelled") : reason));
  return true;
}

absl::Status Rendezvous::CancelStep(uint64_t step, const absl::Status& reason) {
  if (reason.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cancel step ", step, ": the reason is OK; pass an error"));
  }
  Due due;
  {
    absl::MutexLock lock(&mu_);
    ended_.End(step, reason);
    const auto first = slots_.lower_bound(RendezvousKey{step, "", "", ""});
    auto last = first;
    while (last != slots_.end() && last->first.step == step) ++last;
    EndLocked(first, last, reason, &due);
  }
  due.Run();
  return absl::OkStatus();
}

void Rendezvous::FinishStep(uint64_t step) {
  CancelStep(step, absl::FailedPreconditionError("the step has finished"))
      .IgnoreError();
}

absl::Status Rendezvous::CancelAll(const absl::Status& reason) {
  if (reason.ok()) {
    return absl::InvalidArgumentError(
        "cancel all steps: the reason is OK; pass an error");
  }
  Due due;
  {
    absl::MutexLock lock(&mu_);
    ended_.EndAll(reason);
    EndLocked(slots_.begin(), slots_.end(), reason, &due);
  }
  due.Run();
  return absl::OkStatus();
}

void Rendezvous::EndLocked(Slots::iterator from, Slots::iterator to,
                           const absl::Status& reason, Due* due) {
  const absl::Status shortened = EndedSteps::Shortened(reason);
  while (from != to) {
    for (auto& waiter : from->second.waiters) {
      due->calls.emplace_back(std::move(waiter.second),
                              Ended("receive", from->first, shortened));
      waiters_.erase(waiter.first);
    }
    from =
        from->second.receivers > 0 ? DropLocked(from, due) : slots_.erase(from);
  }
}

Rendezvous::Slots::iterator Rendezvous::DropLocked(Slots::iterator slot,
                                                   Due* due) {
  // Its last holder may run code of the program's.
  due->dropped.push_back(std::move(slot->second.kept.tensor));
  bytes_ -= slot->second.bytes;
  by_age_.erase(slot->second.serial);
  return slots_.erase(slot);
}

void Rendezvous::SweepLocked(Due* due) {
  if (by_age_.empty()) return;
  const absl::Time now = options_.clock();
  while (!by_age_.empty() && by_age_.begin()->second.expires <= now) {
    DropLocked(by_age_.begin()->second.slot, due);
  }
}

void Rendezvous::Sweep() {
  Due due;
  absl::MutexLock lock(&mu_);
  SweepLocked(&due);
}

Rendezvous::Usage Rendezvous::usage() const {
  absl::MutexLock lock(&mu_);
  return Usage{bytes_, by_age_.size(), waiters_.size()};
}

}  // namespace penstock::tensor
