#include "ps/model/wire.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/util/message_differencer.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

using optim::OptimizerConfig;
using ScheduleKind = optim::Schedule::Kind;

constexpr int64_t kUnlimitedOnWire = -1;
constexpr size_t kMaxDifferenceBytes = 1000;
constexpr ScheduleKind kSchedules[] = {
    ScheduleKind::kConstant, ScheduleKind::kStep, ScheduleKind::kCosine};

v1::Schedule ToMessage(const optim::Schedule& schedule) {
  v1::Schedule message;
  message.set_kind(std::string(optim::Name(schedule.kind)));
  message.set_learning_rate(schedule.learning_rate);
  message.set_warm_up_steps(schedule.warm_up_steps);
  message.set_every(schedule.every);
  message.set_factor(schedule.factor);
  message.set_final_rate(schedule.final_rate);
  return message;
}

absl::StatusOr<optim::Schedule> FromMessage(const v1::Schedule& message) {
  optim::Schedule schedule;
  const auto* const kind = std::find_if(
      std::begin(kSchedules), std::end(kSchedules),
      [&](ScheduleKind each) { return optim::Name(each) == message.kind(); });
  if (kind == std::end(kSchedules)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no schedule is called '", base::Printable(message.kind(), 100),
        "'; there are constant, step and cosine"));
  }
  schedule.kind = *kind;
  schedule.learning_rate = message.learning_rate();
  schedule.warm_up_steps = message.warm_up_steps();
  schedule.every = message.every();
  if (message.has_factor()) schedule.factor = message.factor();
  schedule.final_rate = message.final_rate();
  return schedule;
}

v1::Optimizer ToMessage(const OptimizerConfig& config) {
  v1::Optimizer message;
  message.set_rule(std::string(optim::Name(config.rule)));
  *message.mutable_schedule() = ToMessage(config.schedule);
  message.set_weight_decay(config.weight_decay);
  message.set_clip_value(config.clip_value);
  message.set_momentum(config.momentum);
  message.set_decay(config.decay);
  message.set_beta1(config.beta1);
  message.set_beta2(config.beta2);
  message.set_epsilon(config.epsilon);
  message.set_ftrl_beta(config.ftrl_beta);
  message.set_lambda1(config.lambda1);
  message.set_lambda2(config.lambda2);
  message.set_initial_accumulator(config.initial_accumulator);
  return message;
}

absl::StatusOr<OptimizerConfig> FromMessage(const v1::Optimizer& message) {
  const auto rule = optim::RuleNamed(base::Printable(message.rule(), 100));
  if (!rule.ok()) return rule.status();
  const auto schedule = FromMessage(message.schedule());
  if (!schedule.ok()) return schedule.status();
  OptimizerConfig config;
  config.rule = *rule;
  config.schedule = *schedule;
  config.weight_decay = message.weight_decay();
  config.clip_value = message.clip_value();
  if (message.has_momentum()) config.momentum = message.momentum();
  if (message.has_decay()) config.decay = message.decay();
  if (message.has_beta1()) config.beta1 = message.beta1();
  if (message.has_beta2()) config.beta2 = message.beta2();
  if (message.has_epsilon()) config.epsilon = message.epsilon();
  if (message.has_ftrl_beta()) config.ftrl_beta = message.ftrl_beta();
  config.lambda1 = message.lambda1();
  config.lambda2 = message.lambda2();
  config.initial_accumulator = message.initial_accumulator();
  return config;
}

v1::Initial ToMessage(const sparse::Initial& initial) {
  v1::Initial message;
  if (initial.kind == sparse::Initial::Kind::kUniform) {
    message.mutable_uniform()->set_low(initial.low);
    message.mutable_uniform()->set_high(initial.high);
  } else if (initial.kind == sparse::Initial::Kind::kNormal) {
    message.mutable_normal()->set_mean(initial.mean);
    message.mutable_normal()->set_stddev(initial.stddev);
  }
  return message;
}

sparse::Initial FromMessage(const v1::Initial& message) {
  sparse::Initial initial;
  if (message.has_uniform()) {
    initial.kind = sparse::Initial::Kind::kUniform;
    initial.low = message.uniform().low();
    initial.high = message.uniform().high();
  } else if (message.has_normal()) {
    initial.kind = sparse::Initial::Kind::kNormal;
    initial.mean = message.normal().mean();
    initial.stddev = message.normal().stddev();
  }
  return initial;
}

v1::SparseTable ToMessage(const SparseSpec& spec) {
  v1::SparseTable message;
  message.set_dim(spec.dim);
  *message.mutable_initial() = ToMessage(spec.initial);
  message.set_seed(spec.seed);
  message.set_min_count(spec.min_count);
  if (spec.time_to_live < absl::InfiniteDuration()) {
    message.set_time_to_live_seconds(
        static_cast<uint64_t>(absl::ToInt64Seconds(spec.time_to_live)));
  }
  message.set_max_rows(spec.max_rows);
  message.set_budget_bytes(spec.budget_bytes);
  message.set_above_budget(static_cast<v1::AboveBudget>(spec.above_budget));
  return message;
}

absl::StatusOr<SparseSpec> FromMessage(const v1::SparseTable& message) {
  SparseSpec spec;
  spec.dim = message.dim();
  spec.initial = FromMessage(message.initial());
  spec.seed = message.seed();
  spec.min_count = std::max<uint32_t>(message.min_count(), 1);
  // The number of seconds from which a duration counts as infinite: a billion
  // years. Smaller numbers do not overflow.
  constexpr uint64_t kForEver = uint64_t{1} << 55;
  if (message.time_to_live_seconds() > 0 &&
      message.time_to_live_seconds() < kForEver) {
    spec.time_to_live =
        absl::Seconds(static_cast<int64_t>(message.time_to_live_seconds()));
  }
  spec.max_rows = message.max_rows();
  spec.budget_bytes = message.budget_bytes();
  if (!v1::AboveBudget_IsValid(message.above_budget())) {
    return absl::InvalidArgumentError(absl::StrCat(
        message.above_budget(), " is nothing that happens above a budget"));
  }
  spec.above_budget = static_cast<sparse::AboveBudget>(message.above_budget());
  return spec;
}

absl::StatusOr<DenseSpec> FromMessage(const v1::DenseTable& message) {
  if (!tensor::IsDType(message.dtype())) {
    return absl::InvalidArgumentError(
        absl::StrCat(message.dtype(), " is no element type"));
  }
  DenseSpec spec;
  spec.dtype = static_cast<tensor::DType>(message.dtype());
  spec.shape.assign(message.shape().begin(), message.shape().end());
  return spec;
}

v1::Table ToMessage(const TableSpec& table) {
  v1::Table message;
  message.set_name(table.name);
  if (table.is_dense()) {
    const auto& dense = absl::get<DenseSpec>(table.rows);
    message.mutable_dense()->set_dtype(
        static_cast<tensor::v1::DType>(dense.dtype));
    message.mutable_dense()->mutable_shape()->Add(dense.shape.begin(),
                                                  dense.shape.end());
  } else {
    *message.mutable_sparse() = ToMessage(absl::get<SparseSpec>(table.rows));
  }
  *message.mutable_optimizer() = ToMessage(table.optimizer);
  message.set_staleness(table.staleness == ConsistencyPolicy::kUnlimited
                            ? kUnlimitedOnWire
                            : table.staleness);
  message.set_backup_workers(table.backup_workers);
  return message;
}

absl::Status ReadRows(const v1::Table& message, TableSpec* table) {
  switch (message.rows_case()) {
    case v1::Table::kDense: {
      auto dense = FromMessage(message.dense());
      if (!dense.ok()) return dense.status();
      table->rows = *std::move(dense);
      return absl::OkStatus();
    }
    case v1::Table::kSparse: {
      auto sparse = FromMessage(message.sparse());
      if (!sparse.ok()) return sparse.status();
      table->rows = *std::move(sparse);
      return absl::OkStatus();
    }
    case v1::Table::ROWS_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("it is neither dense nor sparse");
}

absl::Status ReadTable(const v1::Table& message, TableSpec* table) {
  table->name = message.name();
  absl::Status rows = ReadRows(message, table);
  if (!rows.ok()) return rows;
  auto optimizer = FromMessage(message.optimizer());
  if (!optimizer.ok()) return optimizer.status();
  table->optimizer = *std::move(optimizer);
  table->staleness = message.staleness() == kUnlimitedOnWire
                         ? ConsistencyPolicy::kUnlimited
                         : message.staleness();
  table->backup_workers = message.backup_workers();
  return absl::OkStatus();
}

std::map<std::string, v1::Table> ByName(const Model& model) {
  std::map<std::string, v1::Table> tables;
  for (const TableSpec& table : model.tables) {
    tables[table.name] = ToMessage(table);
  }
  return tables;
}

std::string Differ(const v1::Table& theirs, const v1::Table& ours) {
  std::string report;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&report);
  if (differencer.Compare(theirs, ours)) return "";
  const std::vector<std::string> lines =
      absl::StrSplit(report, '\n', absl::SkipEmpty());
  return absl::StrJoin(lines, "; ");
}

}  // namespace

v1::Model ToMessage(const Model& model) {
  v1::Model message;
  for (const TableSpec& table : model.tables) {
    *message.add_tables() = ToMessage(table);
  }
  return message;
}

absl::StatusOr<Model> FromMessage(const v1::Model& message) {
  Model model;
  for (const v1::Table& each : message.tables()) {
    TableSpec table;
    absl::Status status = ReadTable(each, &table);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "table ", base::Printable(each.name(), 100), ": ", status.message()));
    }
    model.tables.push_back(std::move(table));
  }
  absl::Status status = CheckModel(model);
  if (!status.ok()) return status;
  return model;
}

std::string Difference(const Model& theirs, const Model& ours) {
  const std::map<std::string, v1::Table> before = ByName(theirs);
  const std::map<std::string, v1::Table> after = ByName(ours);
  const auto named = [](const std::string& name, const std::string& what) {
    return base::Printable(absl::StrCat("table ", name, ": ", what),
                           kMaxDifferenceBytes);
  };
  for (const auto& [name, table] : before) {
    const auto other = after.find(name);
    if (other == after.end()) return named(name, "it is missing");
    const std::string how = Differ(table, other->second);
    if (!how.empty()) return named(name, how);
  }
  for (const auto& [name, table] : after) {
    if (before.count(name) == 0) return named(name, "it is new");
  }
  return "";
}

}  // namespace penstock::ps
