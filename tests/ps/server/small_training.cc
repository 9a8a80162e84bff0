#include "tests/ps/server/small_training.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/server/checkpoint_restore.h"
#include "tests/ps/server/small_server.h"

namespace penstock::ps {
namespace {

uint64_t NewIncarnation() {
  static std::atomic<uint64_t> last{100};
  return ++last;
}

size_t RowElements(const LocalRange& range) {
  size_t elements = 1;
  for (size_t i = 1; i < range.shape.size(); ++i) elements *= range.shape[i];
  return elements;
}

// Returns the index of a piece's first element in its table.
size_t FirstOf(const LocalRange& range) {
  return range.first_row * RowElements(range);
}

size_t ElementsOf(const TableSpec& table) {
  size_t elements = 1;
  for (int64_t side : absl::get<DenseSpec>(table.rows).shape) elements *= side;
  return elements;
}

}  // namespace

SmallTraining::SmallTraining(Model model, checkpoint::Files* files,
                             const Options& options)
    : model_(std::move(model)),
      options_(options),
      incarnation_(NewIncarnation()),
      clocks_(options.workers) {
  for (size_t i = 0; i < options.servers; ++i) {
    Server::Options server;
    server.membership.expected_workers = options.workers;
    server.log = [](const std::string&) {};
    server.tables.new_tier = options.new_tier;
    if (options.restore) {
      RestoreOptions restore;
      restore.may_drop_tables = options.drop_tables;
      restore.may_drop_rows = options.drop_rows;
      restore.log = options.restore_log;
      server.restore = RestoreFrom(
          files,
          options.step > 0 ? absl::make_optional(options.step) : absl::nullopt,
          restore);
    }
    servers_.push_back(std::make_unique<Server>(server));
    writers_.push_back(std::make_unique<CheckpointWriter>(
        files, servers_.back().get(), options.checkpoints));
  }
}

absl::StatusOr<uint64_t> SmallTraining::Define() {
  Server::Definition definition;
  definition.model = model_;
  definition.run = kRun;
  for (size_t i = 0; i < servers_.size(); ++i) {
    definition.servers.push_back(absl::StrCat("ps", i, ":2222"));
  }
  const auto choice = servers_[0]->ChooseCut(kRun);
  if (!choice.ok()) return choice.status();
  definition.cut = choice->cut;
  for (size_t i = 0; i < servers_.size(); ++i) {
    definition.server = static_cast<uint32_t>(i);
    const auto defined = servers_[i]->Define(definition);
    if (!defined.ok()) return defined.status();
  }
  return definition.cut.value_or(CutId()).step;
}

absl::Status SmallTraining::Begin(const TableValues& first) {
  for (auto& server : servers_) {
    for (uint32_t worker = 0; worker < options_.workers; ++worker) {
      const auto joined = server->Join(view(), Id(worker));
      if (!joined.ok()) return joined.status();
      clocks_[worker] = joined->clock;
    }
    const auto taken = server->Initialize(
        view(), Id(0), PartsOf(*server->training()->tables, first, true));
    if (!taken.ok()) return taken.status();
  }
  return absl::OkStatus();
}

tensor::Bundle SmallTraining::PartsOf(const Tables& tables,
                                      const TableValues& values,
                                      bool all) const {
  tensor::Bundle bundle;
  for (const Part& part : tables.parts()) {
    std::vector<float> elements(ps::ElementsOf(part));
    bool has_any = all;
    for (const Part::Piece& piece : part.pieces) {
      const LocalRange& range = tables.model().ranges()[piece.range];
      const auto found =
          values.dense.find(tables.model().table(range.table).name);
      if (found == values.dense.end()) continue;
      has_any = true;
      std::copy_n(found->second.begin() + FirstOf(range), piece.elements,
                  elements.begin() + piece.first);
    }
    if (has_any) {
      bundle.tensors.push_back(Floats(part.name, part.shape, elements));
    }
  }
  return bundle;
}

void SmallTraining::AddRows(const Tables& tables, const TableValues& gradients,
                            tensor::Bundle* bundle) const {
  for (const auto& [name, rows] : gradients.rows) {
    const PlacedTable& placed = *tables.placement().Find(name);
    std::vector<int64_t> ids;
    std::vector<float> values;
    for (const auto& [id, gradient] : rows) {
      if (placed.ServerOfId(id) != tables.server()) continue;
      ids.push_back(static_cast<int64_t>(id));
      values.insert(values.end(), gradient.begin(), gradient.end());
    }
    if (ids.empty()) continue;
    const auto count = static_cast<int64_t>(ids.size());
    bundle->tensors.push_back(Ids(name, ids));
    bundle->tensors.push_back(Floats(
        name, {count, static_cast<int64_t>(values.size()) / count}, values));
  }
}

absl::Status SmallTraining::Push(uint32_t worker, const TableValues& gradients,
                                 bool will_help) {
  for (auto& server : servers_) {
    const Tables& tables = *server->training()->tables;
    tensor::Bundle bundle = PartsOf(tables, gradients, false);
    AddRows(tables, gradients, &bundle);
    Answer<Server::PushVerdict> answer;
    server->Push(view(), Id(worker), clocks_[worker], bundle, answer.callback(),
                 will_help);
    const auto verdict = answer.Wait();
    if (!verdict.ok()) return verdict.status();
    if (*verdict != Server::PushVerdict::kCounted) {
      return absl::InternalError("a push was not counted");
    }
  }
  ++clocks_[worker];
  return absl::OkStatus();
}

absl::Status SmallTraining::Settle() {
  for (auto& server : servers_) {
    Server::PullSpec spec;
    spec.clock = *std::max_element(clocks_.begin(), clocks_.end());
    Answer<Server::Pulled> answer;
    server->Pull(view(), spec, answer.callback());
    const auto pulled = answer.Wait();
    if (!pulled.ok()) return pulled.status();
  }
  return absl::OkStatus();
}

void SmallTraining::AddParts(const Tables& tables, TrainingState* state) const {
  for (size_t i = 0; i < tables.parts().size(); ++i) {
    const DensePart::Snapshot snapshot = tables.dense().part(i).TakeSnapshot();
    for (const Part::Piece& piece : tables.parts()[i].pieces) {
      const LocalRange& range = tables.model().ranges()[piece.range];
      const TableSpec& table = tables.model().table(range.table);
      const auto add = [&](const std::string& name,
                           const tensor::Tensor& tensor) {
        std::vector<float>& all = state->dense[name];
        all.resize(ElementsOf(table));
        const std::vector<float> part = ps::ElementsOf(tensor);
        std::copy_n(part.begin() + piece.first, piece.elements,
                    all.begin() + FirstOf(range));
      };
      add(table.name, snapshot.value);
      for (const tensor::NamedTensor& slot : snapshot.slots) {
        add(absl::StrCat(table.name, "/", slot.name), slot.tensor);
      }
      uint64_t& steps = state->steps[table.name];
      steps = std::max(steps, snapshot.steps);
    }
  }
}

void SmallTraining::AddTables(Tables* tables, TrainingState* state) const {
  for (size_t i = 0; i < tables->model().rows().size(); ++i) {
    const std::string& name =
        tables->model().table(tables->model().rows()[i].table).name;
    const size_t dim = tables->table(i).options().dim;
    auto snapshot = tables->table(i).BeginSnapshot({});
    if (!snapshot.ok()) continue;
    sparse::RowBlock block;
    while (*(*snapshot)->Next(100, &block)) {
      const size_t slots = block.slots.size() / block.ids.size();
      for (size_t row = 0; row < block.ids.size(); ++row) {
        std::vector<float>& all = state->rows[name][block.ids[row]];
        all.assign(block.values.begin() + row * dim,
                   block.values.begin() + (row + 1) * dim);
        all.insert(all.end(), block.slots.begin() + row * slots,
                   block.slots.begin() + (row + 1) * slots);
        all.push_back(static_cast<float>(block.updates[row]));
      }
    }
    uint64_t& steps = state->steps[name];
    steps = std::max(steps, tables->sparse_steps(i));
  }
}

TrainingState SmallTraining::State() {
  TrainingState state;
  for (size_t i = 0; i < servers_.size(); ++i) {
    AddParts(tables(i), &state);
    AddTables(&tables(i), &state);
  }
  return state;
}

absl::StatusOr<CheckpointWriter::Attempt> SmallTraining::BeginAttempt(
    bool incremental, size_t keep) {
  CheckpointWriter::Clocks clocks;
  for (const auto& server : servers_) {
    for (const WorkerReport& each : server->report().workers) {
      clocks.push_back({each.rank, 0, each.pushed});
    }
  }
  const auto begun = writers_[0]->Begin({view(), incremental, keep, clocks});
  if (!begun.ok()) return begun.status();
  return begun->attempt;
}

absl::StatusOr<std::vector<CheckpointWriter::Shard>> SmallTraining::WriteShards(
    const CheckpointWriter::Attempt& attempt) {
  std::vector<CheckpointWriter::Shard> shards;
  std::vector<HeldSteps> held;
  for (auto& server : servers_) {
    auto steps = server->HoldSteps(view());
    if (!steps.ok()) return steps.status();
    held.push_back(*std::move(steps));
  }
  const bool is_synchronous =
      std::any_of(model_.tables.begin(), model_.tables.end(),
                  [](const TableSpec& table) { return table.staleness == 0; });
  const CutPoint cut = FirstCutOf(held, is_synchronous);
  for (auto& writer : writers_) {
    auto shard = writer->Write(attempt, cut);
    if (!shard.ok()) return shard.status();
    shards.push_back(*std::move(shard));
  }
  return shards;
}

absl::StatusOr<uint64_t> SmallTraining::Checkpoint(bool incremental,
                                                   size_t keep) {
  const auto attempt = BeginAttempt(incremental, keep);
  if (!attempt.ok()) return attempt.status();
  auto shards = WriteShards(*attempt);
  if (absl::IsNotFound(shards.status()) && incremental) {
    return Checkpoint(false, keep);
  }
  if (!shards.ok()) return shards.status();
  const auto removed = writers_[0]->Commit(*attempt, *shards);
  if (!removed.ok()) return removed.status();
  return attempt->step;
}

}  // namespace penstock::ps
