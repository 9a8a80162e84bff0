#include "ps/server/server.h"

#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/server/refusals.h"

namespace penstock::ps {
namespace {

using base::SteadyNow;

uint64_t DrawInstance() {
  std::random_device device;
  // Never 0, because the lowest bit is set.
  return (static_cast<uint64_t>(device()) << 32 | device()) | 1;
}

}  // namespace

Server::Server(const Options& options)
    : options_(options),
      instance_(DrawInstance()),
      steps_(options.max_wait, &clock_, [this] { ExpireReady(); }) {}

Server::~Server() {
  Drain();
  steps_.Stop();
}

void Server::EndReadyLocked(const absl::Status& status, Due* due) {
  for (auto& [ticket, ready] : pending_ready_) {
    due->push_back(
        [callback = std::move(ready.callback), status] { callback(status); });
  }
  pending_ready_.clear();
  steps_.SetAlarm(absl::InfiniteFuture());
}

void Server::ExpireReady() {
  Due due;
  {
    absl::MutexLock lock(&mu_);
    const absl::Time now = SteadyNow();
    while (!pending_ready_.empty() &&
           pending_ready_.begin()->second.deadline <= now) {
      const auto first = pending_ready_.begin();
      due.push_back([callback = std::move(first->second.callback)] {
        callback(absl::DeadlineExceededError(
            "worker 0 has not initialised the variables"));
      });
      pending_ready_.erase(first);
    }
    steps_.SetAlarm(pending_ready_.empty()
                        ? absl::InfiniteFuture()
                        : pending_ready_.begin()->second.deadline);
  }
  for (const auto& callback : due) callback();
}

absl::Status Server::CheckRunLocked(uint64_t run) const {
  if (state_ == State::kDraining) return Draining();
  if (training_ == nullptr) return HasNoModel(run);
  if (run != training_->run) return OtherRun(run, training_->run);
  return absl::OkStatus();
}

absl::Status Server::CheckViewLocked(const View& view) const {
  absl::Status status = CheckRunLocked(view.run);
  if (!status.ok()) return status;
  return training_->tables->placement().CheckEpoch(view.epoch);
}

absl::Status Server::CheckHasValuesLocked() const {
  switch (state_) {
    case State::kServing:
      return absl::OkStatus();
    case State::kEmpty:
    case State::kDefined:
      return absl::FailedPreconditionError(
          "worker 0 has not initialised the variables; GetModel() can wait for "
          "that");
    case State::kDraining:
      return Draining();
  }
  return Draining();
}

absl::StatusOr<Server::ExchangePtr> Server::Serving(const View& view) const {
  absl::MutexLock lock(&mu_);
  absl::Status status = CheckViewLocked(view);
  if (status.ok()) status = CheckHasValuesLocked();
  if (!status.ok()) return status;
  return exchange_;
}

Server::ExchangePtr Server::ExchangeOf(uint64_t run) const {
  absl::MutexLock lock(&mu_);
  const bool is_other =
      run != 0 && (training_ == nullptr || training_->run != run);
  return is_other ? nullptr : exchange_;
}

absl::StatusOr<std::vector<RankClock>> Server::AppliedClocks(
    const View& view) const {
  const auto serving = Serving(view);
  if (!serving.ok()) return serving.status();
  absl::Status status = (*serving)->failure();
  if (!status.ok()) return status;
  return (*serving)->StateOfApplied().clocks;
}

std::shared_ptr<const Server::Training> Server::training() const {
  absl::MutexLock lock(&mu_);
  return training_;
}

absl::StatusOr<std::shared_ptr<const Server::Training>> Server::TrainingOf(
    const View& view) const {
  absl::MutexLock lock(&mu_);
  absl::Status status = CheckViewLocked(view);
  if (!status.ok()) return status;
  return training_;
}

bool Server::has_values() const {
  absl::MutexLock lock(&mu_);
  return training_ != nullptr && training_->tables->dense().has_values();
}

absl::optional<CutId> Server::restored() const {
  absl::MutexLock lock(&mu_);
  return training_ == nullptr ? absl::nullopt : training_->cut;
}

uint64_t Server::AwaitValues(ReadyCallback callback) {
  absl::Status status;
  const uint64_t ticket = next_ticket_++;
  ExchangePtr serving;
  {
    absl::MutexLock lock(&mu_);
    const bool waits = state_ == State::kEmpty || state_ == State::kDefined;
    if (waits && pending_ready_.size() >= options_.max_waiting_calls) {
      status = TooManyWait(pending_ready_.size());
    } else if (waits) {
      pending_ready_[ticket] = {std::move(callback),
                                SteadyNow() + options_.max_wait};
      steps_.SetAlarm(pending_ready_.begin()->second.deadline);
      return ticket;
    } else {
      status = CheckHasValuesLocked();
      serving = exchange_;
    }
  }
  if (status.ok()) status = serving->failure();
  callback(status);
  return ticket;
}

absl::StatusOr<Server::Joined> Server::Join(const View& view,
                                            const WorkerId& worker) {
  ExchangePtr exchange;
  {
    absl::MutexLock lock(&mu_);
    absl::Status status = CheckViewLocked(view);
    if (!status.ok()) return status;
    exchange = exchange_;
  }
  return exchange->Join(worker);
}

uint64_t Server::StartJoin(const View& view, const WorkerId& worker,
                           JoinCallback callback) {
  callback(Join(view, worker));
  return 0;  // no call waits
}

absl::Status Server::Heartbeat(uint64_t run, const WorkerId& worker) {
  ExchangePtr exchange;
  {
    absl::MutexLock lock(&mu_);
    absl::Status status = CheckRunLocked(run);
    if (!status.ok()) return status;
    exchange = exchange_;
  }
  return exchange->Heartbeat(worker);
}

void Server::Leave(const WorkerId& worker, uint64_t run) {
  if (const ExchangePtr ours = ExchangeOf(run)) ours->Leave(worker);
}

void Server::Lost(const WorkerId& worker, uint64_t run) {
  if (const ExchangePtr ours = ExchangeOf(run)) ours->Lost(worker);
}

uint64_t Server::Push(const View& view, const WorkerId& worker, uint64_t clock,
                      const tensor::Bundle& gradients, PushCallback callback,
                      bool will_help) {
  const uint64_t ticket = next_ticket_++;
  const auto serving = Serving(view);
  if (!serving.ok()) {
    callback(serving.status());
    return ticket;
  }
  auto checked = (*serving)->Check(worker, clock, gradients);
  if (!checked.ok()) {
    callback(checked.status());
  } else if (checked->repeated.has_value()) {
    callback(*checked->repeated);
  } else {
    (*serving)->Take(ticket, std::move(checked->push), std::move(callback),
                     will_help);
  }
  return ticket;
}

uint64_t Server::Pull(const View& view, const PullSpec& spec,
                      PullCallback callback) {
  const uint64_t ticket = next_ticket_++;
  const auto serving = Serving(view);
  if (serving.ok()) {
    (*serving)->Pull(ticket, spec, std::move(callback));
  } else {
    callback(serving.status());
  }
  return ticket;
}

void Server::Help() { steps_.Help(); }

void Server::Cancel(uint64_t ticket) {
  ReadyCallback callback;
  ExchangePtr serving;
  {
    absl::MutexLock lock(&mu_);
    serving = exchange_;
    const auto ready = pending_ready_.find(ticket);
    if (ready != pending_ready_.end()) {
      callback = std::move(ready->second.callback);
      pending_ready_.erase(ready);
    }
  }
  if (callback)
    return callback(absl::CancelledError("the caller has cancelled"));
  if (serving != nullptr) serving->Cancel(ticket);
}

absl::StatusOr<HeldSteps> Server::HoldSteps(const View& view) {
  const auto serving = Serving(view);
  if (!serving.ok()) return serving.status();
  return (*serving)->Hold();
}

void Server::ReleaseSteps(const View& view) {
  if (const auto serving = Serving(view); serving.ok()) (*serving)->Release();
}

absl::StatusOr<ModelSnapshot> Server::TakeSnapshot(
    const View& view, absl::optional<CutPoint> cut,
    const SparseSnapshotOptions& options, absl::Duration timeout,
    const std::function<void(uint64_t ticket)>& on_wait) {
  const auto serving = Serving(view);
  if (!serving.ok()) return serving.status();
  return (*serving)->TakeSnapshot(next_ticket_++, std::move(cut), options,
                                  timeout, on_wait);
}

void Server::Drain() {
  Due due;
  ExchangePtr serving;
  {
    absl::MutexLock lock(&mu_);
    if (state_ == State::kDraining) return;
    state_ = State::kDraining;
    EndReadyLocked(Draining(), &due);
    serving = exchange_;
  }
  steps_.Drain();
  if (serving != nullptr) serving->Drain();
  for (const auto& callback : due) callback();
}

PushCounts Server::push_counts() const {
  const ExchangePtr serving = ExchangeOf(0);
  return serving == nullptr ? PushCounts() : serving->push_counts();
}

ServerReport Server::report() const {
  ServerReport report;
  report.held_bytes_limit = options_.max_held_bytes;
  report.expected_workers = options_.membership.expected_workers;
  std::shared_ptr<Training> training;
  ExchangePtr exchange;
  {
    absl::MutexLock lock(&mu_);
    training = training_;
    exchange = exchange_;
  }
  if (training == nullptr) return report;
  if (training->cut.has_value()) report.restored_step = training->cut->step;
  exchange->Report(&report);
  report.run = training->run;
  report.epoch = training->tables->placement().epoch();
  report.server = training->server;
  report.servers =
      static_cast<uint32_t>(training->tables->placement().servers().size());
  report.has_values = training->tables->dense().has_values();
  report.tables = training->tables->Report();
  return report;
}

}  // namespace penstock::ps
