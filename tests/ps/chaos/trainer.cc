#include "tests/ps/chaos/trainer.h"

#include <atomic>
#include <iostream>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "ps/client/define.h"
#include "ps/client/reattach.h"
#include "ps/client/worker.h"
#include "ps/placement/placement_map.h"
#include "tensor_service/status.h"
#include "tests/ps/chaos/record.h"

namespace penstock::ps {
namespace {

using WorkerPtr = std::unique_ptr<Worker>;

// Limits the time of a call, including the wait for a dead server.
constexpr absl::Duration kTimeout = absl::Seconds(20);

class Trainer {
 public:
  explicit Trainer(const TrainerArguments& arguments)
      : arguments_(arguments),
        policies_(arguments.policies),
        recorder_(arguments.record),
        next_push_(arguments.first_push),
        reader_([this] {
          std::string line;
          while (std::getline(std::cin, line)) continue;
          ends_ = true;
        }) {
    reader_.detach();  // blocks in a read until the process ends
  }

  absl::Status Run() {
    auto begun = Begin();
    if (!begun.ok()) return begun.status();
    WorkerPtr worker = *std::move(begun);
    uint64_t step = worker->clock();
    recorder_.Note(absl::StrCat("begins at step ", step));
    while (!ends_) {
      const absl::Status status = Step(worker.get(), step);
      if (status.ok()) {
        ++step;
        continue;
      }
      auto again = Reattach(worker->options(), status);
      if (!again.ok()) return again.status();
      worker = *std::move(again);
      step = worker->clock();
      recorder_.Note(absl::StrCat("goes on at step ", step));
    }
    worker->Leave();
    return absl::OkStatus();
  }

  void Note(const std::string& text) { recorder_.Note(text); }

 private:
  absl::StatusOr<WorkerPtr> Begin() {
    Worker::Options options;
    options.rank = arguments_.rank;
    options.join_timeout = kTimeout;
    options.pull_timeout = kTimeout;
    options.push_timeout = kTimeout;
    const auto channels = ChannelsTo(arguments_.servers);
    bool wants_values = false;
    if (options.rank == 0) {
      Definition definition;
      definition.servers = channels;
      definition.addresses = arguments_.servers;
      definition.model = ModelOf(policies_);
      definition.timeout = kTimeout;
      auto defined = Define(definition);
      if (!defined.ok()) return defined.status();
      options.connection = defined->connection;
      wants_values = defined->wants_values;
    } else {
      TrainingConnection::Options open;
      open.servers = channels;
      open.timeout = kTimeout;
      auto connection = TrainingConnection::Open(open);
      if (!connection.ok()) return connection.status();
      options.connection = *connection;
    }
    auto worker = Worker::Join(options);
    if (!worker.ok() || !wants_values) return worker;
    const absl::Status given = (*worker)->Initialize(Zeros(policies_.size()));
    if (!given.ok()) return given;
    return worker;
  }

  absl::Status Step(Worker* worker, uint64_t step) {
    const absl::Status pulled = worker->Pull(step).status();
    if (!pulled.ok()) return pulled;
    RecordedPush push;
    push.number = next_push_++;
    push.run = worker->connection().run();
    push.rank = arguments_.rank;
    push.step = step;
    push.ids = IdsOf(worker->connection(), policies_.size(), push.number);
    push.owners = OwnersIn(worker->connection());
    recorder_.Begin(push);
    const auto pushed = worker->Push(step, GradientsOf(push.ids));
    if (!pushed.ok()) return pushed.status();
    if (pushed->counted()) recorder_.Acknowledge(push.number);
    return absl::OkStatus();
  }

  // Returns the server of each policy's dense table.
  std::vector<size_t> OwnersIn(const TrainingConnection& connection) const {
    std::vector<size_t> owners;
    for (const TableSpec& table : ModelOf(policies_).tables) {
      if (!table.is_dense()) continue;
      owners.push_back(
          connection.placement().Find(table.name)->ranges[0].server);
    }
    return owners;
  }

  const TrainerArguments arguments_;
  const std::vector<Staleness> policies_;
  Recorder recorder_;
  uint64_t next_push_;
  std::atomic<bool> ends_{false};
  std::thread reader_;
};

std::vector<Staleness> PoliciesIn(const std::string& text) {
  std::vector<Staleness> policies;
  for (const absl::string_view each : absl::StrSplit(text, ',')) {
    const std::vector<std::string> parts = absl::StrSplit(each, ':');
    Staleness policy;
    (void)absl::SimpleAtoi(parts.at(0), &policy.steps);
    (void)absl::SimpleAtoi(parts.at(1), &policy.backup_workers);
    policies.push_back(policy);
  }
  return policies;
}

}  // namespace

std::string TextOf(const std::vector<Staleness>& policies) {
  return absl::StrJoin(
      policies, ",", [](std::string* text, const Staleness& policy) {
        absl::StrAppend(text, policy.steps, ":", policy.backup_workers);
      });
}

std::vector<std::string> TrainerArguments::ToStrings() const {
  std::vector<std::string> strings = {
      absl::StrCat(rank), absl::StrCat(first_push), TextOf(policies), record};
  strings.insert(strings.end(), servers.begin(), servers.end());
  return strings;
}

TrainerArguments TrainerArguments::From(
    const std::vector<std::string>& strings) {
  TrainerArguments arguments;
  (void)absl::SimpleAtoi(strings.at(0), &arguments.rank);
  (void)absl::SimpleAtoi(strings.at(1), &arguments.first_push);
  arguments.policies = PoliciesIn(strings.at(2));
  arguments.record = strings.at(3);
  arguments.servers.assign(strings.begin() + 4, strings.end());
  return arguments;
}

TrainingConnection::Channels ChannelsTo(
    const std::vector<std::string>& addresses) {
  grpc::ChannelArguments options = tensor::UnlimitedMessages();
  options.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  options.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 20);
  options.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 100);
  TrainingConnection::Channels channels;
  for (const std::string& address : addresses) {
    channels.push_back(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), options));
  }
  return channels;
}

int BeTrainer(const TrainerArguments& arguments) {
  // Never destroys the trainer, because a thread still reads the input.
  auto* const trainer = new Trainer(arguments);
  const absl::Status ended = trainer->Run();
  trainer->Note(absl::StrCat("ends: ", ended.ToString()));
  return ended.ok() ? 0 : 1;
}

}  // namespace penstock::ps
