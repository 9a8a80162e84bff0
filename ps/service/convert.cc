#include "ps/service/convert.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/manifest.h"
#include "ps/model/wire.h"
#include "ps/placement/wire.h"
#include "tensor_service/message.h"

namespace penstock::ps {
namespace {

v1::TableReport ToMessage(const TableReport& report) {
  v1::TableReport message;
  message.set_name(report.name);
  message.set_sparse(report.is_sparse);
  message.set_is_new(report.is_new);
  message.set_steps(report.steps);
  message.set_bytes(report.bytes);
  message.set_rows(report.rows);
  message.set_budget_bytes(report.budget_bytes);
  message.set_hits(report.hits);
  message.set_misses(report.misses);
  message.set_evicted_rows(report.evicted_rows);
  message.set_not_admitted(report.not_admitted);
  message.set_refused_pushes(report.refused_pushes);
  message.set_dropped_gradients(report.dropped_gradients);
  message.set_spilled_rows(report.spilled_rows);
  return message;
}

v1::WorkerReport ToMessage(const WorkerReport& report) {
  v1::WorkerReport message;
  message.set_rank(report.rank);
  message.set_clock(report.clock);
  message.set_is_member(report.is_member);
  message.set_behind(report.behind);
  message.set_pushed(report.pushed);
  return message;
}

v1::Part ToMessage(const Part& part, const LocalModel& model) {
  v1::Part message;
  message.set_name(part.name);
  message.set_dtype(static_cast<tensor::v1::DType>(part.dtype));
  message.mutable_shape()->Assign(part.shape.begin(), part.shape.end());
  for (const Part::Piece& piece : part.pieces) {
    const LocalRange& range = model.ranges()[piece.range];
    v1::Piece* const added = message.add_pieces();
    added->set_table(model.table(range.table).name);
    added->set_first_row(range.first_row);
    added->set_rows(range.shape.empty() ? 1 : range.shape[0]);
  }
  return message;
}

}  // namespace

absl::StatusOr<Server::PullSpec> PullIn(const v1::PullHeader& header,
                                        tensor::Bundle ids) {
  Server::PullSpec spec;
  if (header.has_worker()) spec.worker = WorkerIn(header.worker());
  spec.clock = header.clock();
  spec.all_parts = header.all_parts();
  spec.parts.assign(header.parts().begin(), header.parts().end());
  spec.ids = std::move(ids);
  switch (header.dtype()) {
    case tensor::v1::DTYPE_UNSPECIFIED:
      return spec;
    case tensor::v1::DTYPE_F16:
      spec.dtype = tensor::DType::kF16;
      return spec;
    case tensor::v1::DTYPE_BF16:
      spec.dtype = tensor::DType::kBF16;
      return spec;
    default:
      return absl::InvalidArgumentError(
          "pull: values are sent as they are, or as f16 or bf16");
  }
}

absl::Status Answer(Server::Pulled pulled, absl::Duration waited,
                    grpc::ByteBuffer* reply) {
  tensor::Message<v1::PullReplyHeader> message;
  message.header.set_clock(pulled.clock);
  message.header.set_waited_us(absl::ToInt64Microseconds(waited));
  message.bundle = std::move(pulled.bundle);
  absl::StatusOr<grpc::ByteBuffer> bytes = tensor::Encode(message);
  if (!bytes.ok()) return bytes.status();
  *reply = *std::move(bytes);
  return absl::OkStatus();
}

v1::PushReply::Verdict ToMessage(Server::PushVerdict verdict) {
  switch (verdict) {
    case Server::PushVerdict::kCounted:
      return v1::PushReply::COUNTED;
    case Server::PushVerdict::kDuplicate:
      return v1::PushReply::DUPLICATE;
    case Server::PushVerdict::kLate:
      return v1::PushReply::LATE;
  }
  return v1::PushReply::LATE;
}

v1::GetModelReply ToMessage(const Server::Training& training) {
  v1::GetModelReply message;
  const Tables& tables = *training.tables;
  message.set_run(training.run);
  message.set_server(training.server);
  *message.mutable_model() = ToMessage(tables.model().model());
  *message.mutable_placement() = ToMessage(tables.placement());
  for (const Part& part : tables.parts()) {
    *message.add_parts() = ToMessage(part, tables.model());
  }
  return message;
}

absl::StatusOr<CutId> CutIdIn(const v1::Cut& message) {
  const auto& earlier = message.earlier_runs();
  if (static_cast<size_t>(earlier.size()) > checkpoint::kMaxEarlierRuns) {
    return absl::InvalidArgumentError(
        absl::StrCat("define: the cut has ", earlier.size(), " earlier runs"));
  }
  return CutId{message.step(),
               message.id(),
               message.run(),
               {earlier.begin(), earlier.end()}};
}

v1::ServerReport ToMessage(const ServerReport& report) {
  v1::ServerReport message;
  message.set_run(report.run);
  message.set_epoch(report.epoch);
  message.set_server(report.server);
  message.set_servers(report.servers);
  message.set_has_values(report.has_values);
  message.set_version(report.version);
  message.set_live_workers(report.live_workers);
  message.set_expected_workers(report.expected_workers);
  message.set_workers_lost(report.workers_lost);
  message.set_pushes_counted(report.pushes.counted);
  message.set_pushes_not_counted(report.pushes.not_counted);
  message.set_pushes_refused(report.pushes.refused);
  message.set_held_bytes(report.held_bytes);
  message.set_held_bytes_limit(report.held_bytes_limit);
  message.set_restored_step(report.restored_step);
  message.set_last_checkpoint_step(report.last_checkpoint_step);
  message.set_failure(report.failure);
  message.set_last_checkpoint_age_us(static_cast<uint64_t>(
      absl::ToInt64Microseconds(report.last_checkpoint_age)));
  message.set_checkpoints(report.checkpoints);
  message.set_checkpoints_bytes(report.checkpoints_bytes);
  message.set_aside_checkpoints(report.aside_checkpoints);
  message.set_aside_checkpoints_bytes(report.aside_checkpoints_bytes);
  message.set_checkpoint_failures(report.checkpoint_failures);
  message.set_checkpoint_failures_since(report.checkpoint_failures_since);
  message.set_checkpoint_failure(report.checkpoint_failure);
  message.set_checkpoint_written_bytes(report.checkpoint_written_bytes);
  message.set_checkpoint_total_bytes(report.checkpoint_total_bytes);
  for (const TableReport& table : report.tables) {
    *message.add_tables() = ToMessage(table);
  }
  for (const WorkerReport& worker : report.workers) {
    *message.add_workers() = ToMessage(worker);
  }
  return message;
}

}  // namespace penstock::ps
