#include "examples/common/sparse_training.h"

#include <xxhash.h>

#include <iostream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "examples/common/connection.h"
#include "grpcpp/security/credentials.h"
#include "ps/client/define.h"
#include "ps/client/reattach.h"
#include "ps/client/training_connection.h"
#include "ps/consistency/policy.h"

namespace penstock::examples {
namespace {

constexpr absl::Duration kReadTimeout = absl::Minutes(1);

ps::TrainingConnection::Channels ChannelsTo(
    const std::vector<std::string>& servers) {
  return Connect(servers, grpc::InsecureChannelCredentials(), /*secret=*/"",
                 /*stock=*/false);
}

absl::Status AwaitStep(uint64_t step, ps::Worker* worker) {
  ps::PullSpec nothing;
  nothing.all_dense = false;
  return worker->Pull(step, nothing).status();
}

}  // namespace

uint64_t IdOf(absl::string_view name) {
  return XXH3_64bits(name.data(), name.size());
}

absl::StatusOr<int64_t> StalenessOf(absl::string_view text) {
  if (text == "unlimited") return ps::ConsistencyPolicy::kUnlimited;
  int64_t steps;
  if (absl::SimpleAtoi(text, &steps) && steps >= 0) return steps;
  return absl::InvalidArgumentError(absl::StrCat(
      "staleness '", text, "' is neither a number of steps nor 'unlimited'"));
}

absl::StatusOr<std::unique_ptr<ps::Worker>> Join(
    const std::vector<std::string>& servers, uint32_t rank,
    const ps::Model& model) {
  ps::Worker::Options options;
  options.rank = rank;
  if (rank != 0) {
    auto connection = ps::TrainingConnection::Open({ChannelsTo(servers)});
    if (!connection.ok()) return connection.status();
    options.connection = *std::move(connection);
    return ps::Worker::Join(std::move(options));
  }
  auto defined = ps::Define({ChannelsTo(servers), servers, model});
  if (!defined.ok()) return defined.status();
  options.connection = defined->connection;
  auto worker = ps::Worker::Join(std::move(options));
  if (!worker.ok() || !defined->wants_values) return worker;
  // Declares the chief ready. The model defines the initial rows, so there are
  // no values.
  absl::Status status = (*worker)->Initialize({});
  if (!status.ok()) return status;
  return worker;
}

absl::Status Train(uint64_t steps, const TakeStep& take_step,
                   std::unique_ptr<ps::Worker> worker) {
  uint64_t step = worker->clock();
  while (true) {
    const bool is_over = step >= steps;
    const absl::Status status = is_over ? AwaitStep(steps, worker.get())
                                        : take_step(worker.get(), &step);
    if (status.ok() && is_over) break;
    if (status.ok()) continue;
    auto again = ps::Reattach(worker->options(), status);
    if (!again.ok()) return again.status();
    worker = *std::move(again);
    step = worker->clock();
    std::cerr << "servers were restarted: this worker continues at step "
              << step << "\n";
  }
  worker->Leave();
  return absl::OkStatus();
}

absl::StatusOr<tensor::Tensor> ReadRows(const std::vector<std::string>& servers,
                                        const std::string& table,
                                        const std::vector<uint64_t>& ids,
                                        uint64_t step) {
  auto connection = ps::TrainingConnection::Open({ChannelsTo(servers)});
  if (!connection.ok()) return connection.status();
  ps::Reader reader(*std::move(connection));
  ps::PullSpec spec;
  spec.rows.push_back({table, ids});
  auto pulled = reader.Pull(step, spec, kReadTimeout);
  if (!pulled.ok()) return pulled.status();
  return pulled->Rows(0).Copy();
}

}  // namespace penstock::examples
