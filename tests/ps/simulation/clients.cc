#include "tests/ps/simulation/clients.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "ps/client/reattach.h"
#include "tests/ps/training/training.h"

namespace penstock::ps {
namespace {

absl::StatusOr<std::shared_ptr<const TrainingConnection>> Open(
    const TrainingConnection::Channels& channels, bool waits) {
  TrainingConnection::Options options;
  options.servers = channels;
  options.wait_for_values = waits;
  return TrainingConnection::Open(options);
}

}  // namespace

void Chief::StartDefine(const Model& model) {
  Definition definition;
  definition.servers = channels();
  for (size_t i = 0; i < channels().size(); ++i) {
    definition.addresses.push_back(absl::StrCat("ps", i, ":2222"));
  }
  definition.model = model;
  Start([definition] { return Define(definition).status(); });
}

void Saver::StartSave(bool incremental, uint64_t keep,
                      std::set<uint64_t> settled) {
  settled_ = std::move(settled);
  CheckpointOptions options;
  options.incremental = incremental;
  options.keep = keep;
  Start([this, options] {
    const auto connection = Open(channels(), /*waits=*/false);
    if (!connection.ok()) return connection.status();
    return TakeCheckpoint(**connection, options).status();
  });
}

void Trainer::StartJoin() {
  call_ = Call::kJoin;
  Start([this] {
    auto connection = Open(channels(), /*waits=*/rank_ > 0);
    if (!connection.ok()) return connection.status();
    connection_ = *std::move(connection);
    Worker::Options options;
    options.connection = connection_;
    options.rank = rank_;
    options.incarnation = incarnation();
    auto worker = Worker::Join(options);
    if (!worker.ok()) return worker.status();
    worker_ = *std::move(worker);
    step_ = worker_->clock();
    return absl::OkStatus();
  });
}

void Trainer::StartInitialize(size_t policies) {
  call_ = Call::kInitialize;
  Start([this, policies] { return worker_->Initialize(Zeros(policies)); });
}

void Trainer::StartPull() {
  call_ = Call::kPull;
  Start([this] { return worker_->Pull(step_).status(); });
}

void Trainer::StartPush(const Push& push) {
  call_ = Call::kPush;
  push_ = push.number;
  Start([this, gradients = GradientsOf(push.rows)] {
    const auto pushed = worker_->Push(step_, gradients);
    has_counted_ = pushed.ok() && pushed->counted();
    return pushed.status();
  });
}

void Trainer::StartLeave() {
  call_ = Call::kLeave;
  Start([this] {
    if (worker_ != nullptr && !is_killed()) worker_->Leave();
    worker_ = nullptr;
    return absl::OkStatus();
  });
}

void Trainer::StartReattach(const absl::Status& error) {
  call_ = Call::kReattach;
  Start([this, error] {
    auto again = Reattach(worker_->options(), error);
    if (!again.ok()) return again.status();
    worker_ = *std::move(again);
    connection_ = worker_->options().connection;
    step_ = worker_->clock();
    return absl::OkStatus();
  });
}

}  // namespace penstock::ps
