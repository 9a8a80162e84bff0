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

// Returns a status with the code of the reason, and a message that names the
// operation.
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
      budget_(options_.budget_bytes),
      sent_(options_.budget_bytes, options_.client_share),
      handed_(options_.budget_bytes, options_.client_share),
      waiting_(options_.max_waiters, options_.client_share),
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
                              const SendOptions& options,
                              const std::string& client) {
  absl::Status status = CheckSend(key, options);
  if (!status.ok()) return status;
  Received sent{tensor, options.is_dead};
  // Compacts only a tensor that must be kept, and does so without the lock. If
  // receivers disappear meanwhile, the tensor is stored uncompacted, and counts
  // with its whole memory. A tensor on a device needs no compaction, because it
  // is no part of a message.
  if (!IsAwaited(key, options.receivers) && tensor.device().is_host()) {
    absl::StatusOr<Tensor> compact = tensor.Compact();
    if (!compact.ok()) return compact.status();
    sent.tensor = *std::move(compact);
  }
  Due due;
  {
    absl::MutexLock lock(&mu_);
    SweepLocked(&due);
    status = SendLocked(key, sent, options.receivers, client, &due);
  }
  due.Run();
  return status;
}

absl::StatusOr<std::shared_ptr<const void>> Rendezvous::HoldFor(
    const std::string& client, const std::shared_ptr<Budget::Hold>& bytes) {
  if (client.empty()) return std::shared_ptr<const void>();
  struct Handed {
    ClientShares::Hold of_client;
    std::shared_ptr<Budget::Hold> bytes;
  };
  absl::StatusOr<ClientShares::Hold> of_client =
      handed_.Take(client, bytes->bytes());
  if (!of_client.ok()) return of_client.status();
  auto handed = std::make_shared<Handed>();
  handed->of_client = *std::move(of_client);
  handed->bytes = bytes;
  return std::shared_ptr<const void>(std::move(handed));
}

absl::StatusOr<Rendezvous::Room> Rendezvous::TakeRoomLocked(
    size_t bytes, const std::string& client, Slots::iterator slot,
    uint32_t served, bool is_kept) {
  Room room;
  room.of_receivers.resize(served);
  bool is_counted = is_kept;
  auto waiter = served > 0 ? slot->second.waiters.begin()
                           : std::map<uint64_t, Waiter>::iterator();
  for (uint32_t i = 0; i < served; ++i, ++waiter) {
    is_counted = is_counted || !waiter->second.client.empty();
  }
  if (!is_counted) return room;
  absl::StatusOr<Budget::Hold> hold = budget_.Take(bytes);
  if (!hold.ok()) return hold.status();
  room.bytes = std::make_shared<Budget::Hold>(*std::move(hold));
  if (is_kept) {
    absl::StatusOr<ClientShares::Hold> of_sender = sent_.Take(client, bytes);
    if (!of_sender.ok()) return of_sender.status();
    room.of_sender = *std::move(of_sender);
  }
  if (served > 0) waiter = slot->second.waiters.begin();
  for (uint32_t i = 0; i < served; ++i, ++waiter) {
    auto of_receiver = HoldFor(waiter->second.client, room.bytes);
    if (!of_receiver.ok()) return of_receiver.status();
    room.of_receivers[i] = *std::move(of_receiver);
  }
  return room;
}

absl::Status Rendezvous::SendLocked(const RendezvousKey& key,
                                    const Received& sent, uint32_t receivers,
                                    const std::string& client, Due* due) {
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
  absl::StatusOr<Room> room =
      TakeRoomLocked(bytes, client, slot, served, served < receivers);
  if (!room.ok()) {
    return absl::Status(
        room.status().code(),
        absl::StrCat("send ", key.ToString(), ": ", room.status().message(),
                     "; receive tensors or end steps first, or raise "
                     "budget_bytes or client_share"));
  }
  for (uint32_t i = 0; i < served; ++i) {
    auto waiter = slot->second.waiters.begin();
    waiters_.erase(waiter->first);
    due->calls.emplace_back(
        std::move(waiter->second.callback),
        Received{sent.tensor, sent.is_dead, std::move(room->of_receivers[i])});
    slot->second.waiters.erase(waiter);
  }
  if (served < receivers) {
    KeepLocked(key, sent, receivers - served, *std::move(room));
  } else if (slot->second.waiters.empty()) {
    slots_.erase(slot);
  }
  return absl::OkStatus();
}

void Rendezvous::KeepLocked(const RendezvousKey& key, const Received& sent,
                            uint32_t receivers, Room room) {
  const auto slot = slots_.emplace(key, Slot()).first;
  slot->second.kept = sent;
  slot->second.receivers = receivers;
  slot->second.bytes = std::move(room.bytes);
  slot->second.of_sender = std::move(room.of_sender);
  slot->second.serial = next_number_++;
  // Adds the tensor in the order of serials. Tensors also expire in this order,
  // because the time limit is the same for all.
  const absl::Time expires = options_.unfetched_limit == absl::ZeroDuration()
                                 ? absl::InfiniteFuture()
                                 : options_.clock() + options_.unfetched_limit;
  by_age_.emplace(slot->second.serial, Age{expires, slot});
}

uint64_t Rendezvous::Receive(const RendezvousKey& key, Callback callback,
                             const std::string& client) {
  absl::Status status = key.Check();
  uint64_t wait;
  Due due;
  {
    absl::MutexLock lock(&mu_);
    wait = next_number_++;
    SweepLocked(&due);
    if (status.ok()) status = ReceiveLocked(key, wait, &callback, client, &due);
  }
  due.Run();
  if (!status.ok()) callback(status);
  return wait;
}

absl::Status Rendezvous::ReceiveLocked(const RendezvousKey& key, uint64_t wait,
                                       Callback* callback,
                                       const std::string& client, Due* due) {
  absl::Status ended = Ended("receive", key, ended_.Check(key.step));
  if (!ended.ok()) return ended;
  auto slot = slots_.find(key);
  if (slot == slots_.end() || slot->second.receivers == 0) {
    return AwaitLocked(key, wait, callback, client);
  }
  auto hold = HoldFor(client, slot->second.bytes);
  if (!hold.ok()) {
    return absl::Status(
        hold.status().code(),
        absl::StrCat(
            "receive ", key.ToString(), ": ", hold.status().message(),
            ", by taking the tensors sent to it, or raise budget_bytes "
            "or client_share"));
  }
  Received received = slot->second.kept;
  received.hold = *std::move(hold);
  due->calls.emplace_back(std::move(*callback), std::move(received));
  if (--slot->second.receivers == 0) DropLocked(slot, due);
  return absl::OkStatus();
}

absl::Status Rendezvous::AwaitLocked(const RendezvousKey& key, uint64_t wait,
                                     Callback* callback,
                                     const std::string& client) {
  if (waiters_.size() >= options_.max_waiters) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "receive ", key.ToString(), ": ", waiters_.size(),
        " receives wait already, which is the limit; send or cancel the "
        "tensors that they wait for, or raise max_waiters"));
  }
  absl::StatusOr<ClientShares::Hold> place = waiting_.Take(client, 1);
  if (!place.ok()) {
    return absl::Status(
        place.status().code(),
        absl::StrCat("receive ", key.ToString(),
                     ", which would wait: ", place.status().message(),
                     ", or raise max_waiters or client_share"));
  }
  const auto slot = slots_.emplace(key, Slot()).first;
  slot->second.waiters.emplace(
      wait, Waiter{std::move(*callback), client, *std::move(place)});
  waiters_.emplace(wait, slot);
  return absl::OkStatus();
}

absl::StatusOr<Rendezvous::Received> Rendezvous::Receive(
    const RendezvousKey& key, absl::Duration timeout) {
  // Shares the promise with the callback, because set_value() may still run
  // after get() returned.
  auto promise = std::make_shared<std::promise<absl::StatusOr<Received>>>();
  std::future<absl::StatusOr<Received>> result = promise->get_future();
  const uint64_t wait =
      Receive(key, [promise](absl::StatusOr<Received> received) {
        promise->set_value(std::move(received));
      });
  // Waits by a steady clock, unlike absl::CondVar. The cap of a year prevents
  // an overflow.
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
    callback = std::move(waiter->second.callback);
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
      due->calls.emplace_back(std::move(waiter.second.callback),
                              Ended("receive", from->first, shortened));
      waiters_.erase(waiter.first);
    }
    from =
        from->second.receivers > 0 ? DropLocked(from, due) : slots_.erase(from);
  }
}

Rendezvous::Slots::iterator Rendezvous::DropLocked(Slots::iterator slot,
                                                   Due* due) {
  // Holds the tensor until the lock is released, because dropping the last
  // holder may run code of the program.
  due->dropped.push_back(std::move(slot->second.kept.tensor));
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
  return Usage{budget_.held(), by_age_.size(), waiters_.size()};
}

}  // namespace penstock::tensor
