#include "ps/periodic_checkpoints.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::ps {

PeriodicCheckpoints::PeriodicCheckpoints(Server* server, Options options)
    : server_(server),
      options_(std::move(options)),
      thread_([this] { ThreadLoop(); }) {}

PeriodicCheckpoints::~PeriodicCheckpoints() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    wake_.Signal();
  }
  thread_.join();
}

bool PeriodicCheckpoints::Wait() {
  absl::MutexLock lock(&mu_);
  const absl::Time next = base::SteadyNow() + options_.interval;
  while (!stop_ && base::SteadyNow() < next) wake_.WaitUntil(&mu_, next);
  return !stop_;
}

void PeriodicCheckpoints::ThreadLoop() {
  while (Wait()) {
    const auto training = server_->training();
    if (training == nullptr || !server_->has_values()) continue;
    if (training->server != 0) return;
    const absl::Status taken = Take();
    // Nothing has changed since the last one.
    if (taken.ok() || absl::IsAlreadyExists(taken)) continue;
    connection_ = nullptr;
    options_.log(absl::StrCat("no checkpoint was taken: ", taken.message()));
  }
}

absl::Status PeriodicCheckpoints::Take() {
  if (connection_ == nullptr) {
    Connection::Options options;
    const auto training = server_->training();
    for (const std::string& address : training->tables->placement().servers()) {
      options.servers.push_back(options_.connect(address));
    }
    auto connection = Connection::Open(options);
    if (!connection.ok()) return connection.status();
    connection_ = *std::move(connection);
  }
  const auto taken = TakeCheckpoint(*connection_, options_.checkpoint);
  if (!taken.ok()) return taken.status();
  options_.log(absl::StrCat("checkpoint of step ", taken->step, " written, ",
                            taken->bytes, " bytes",
                            taken->is_incremental ? ", incremental" : ""));
  return absl::OkStatus();
}

}  // namespace penstock::ps
