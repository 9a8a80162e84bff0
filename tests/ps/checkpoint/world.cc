#include "tests/ps/checkpoint/world.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::ps::checkpoint {
namespace {

using tensor::DType;

constexpr uint64_t kSparseStep = 77;

Model TestModel(int64_t large_rows) {
  return {{
      {"large",
       TableKind::kDense,
       DType::kF32,
       {large_rows, 7},
       {{"m", DType::kF32}, {"v", DType::kF32}}},
      {"scalar", TableKind::kDense, DType::kF64, {}, {}},
      {"../../etc/passwd\n\xff",
       TableKind::kSparse,
       DType::kF32,
       {8},
       {{"accumulated", DType::kF32}}},
      {"none", TableKind::kDense, DType::kBF16, {0, 4}, {}},
      {std::string("half\0way", 8),
       TableKind::kDense,
       DType::kF16,
       {33, 2, 3},
       {{"master", DType::kF32}}},
      {"words", TableKind::kSparse, DType::kF32, {1}, {}},
  }};
}

uint64_t FirstRow(const TableDefinition& table, size_t server, size_t servers) {
  return Rows(table) * server / servers;
}

size_t ServerOf(uint64_t id, size_t servers) {
  return (id * 0x9e3779b97f4a7c15u >> 32) % servers;
}

}  // namespace

// A sink that adds one server's restored rows to the common world.
class WorldSink : public Sink {
 public:
  WorldSink(World* world, const Model& order,
            std::map<std::string, std::vector<std::vector<bool>>>* seen)
      : world_(world), order_(order), seen_(seen) {}

  absl::Status TakeDense(const DenseElements& elements) override {
    const TableDefinition& table = order_.tables[elements.table];
    World::Dense& dense = world_->dense_[table.name];
    dense.step = elements.step;
    const size_t size = tensor::ElementSize(StreamType(table, elements.stream));
    std::vector<bool>& seen = (*seen_)[table.name][elements.stream];
    for (size_t i = 0; i < elements.bytes.size() / size; ++i) {
      if (seen.at(elements.first + i)) {
        return absl::InternalError("an element comes twice");
      }
      seen[elements.first + i] = true;
    }
    dense.streams[elements.stream].replace(elements.first * size,
                                           elements.bytes.size(),
                                           std::string(elements.bytes));
    return absl::OkStatus();
  }

  absl::Status TakeSparseStep(size_t table, uint64_t step) override {
    stepped_.insert(table);
    return step == kSparseStep ? absl::OkStatus()
                               : absl::InternalError("another step");
  }

  absl::Status TakeRow(size_t table, const SparseRow& row) override {
    if (stepped_.count(table) == 0) return absl::InternalError("no step");
    world_->sparse_[order_.tables[table].name][row.id] = {
        row.last_use, row.count, std::string(row.bytes)};
    return absl::OkStatus();
  }

  absl::Status DropRow(size_t table, uint64_t id) override {
    world_->sparse_[order_.tables[table].name].erase(id);
    return absl::OkStatus();
  }

 private:
  World* const world_;
  const Model& order_;
  std::map<std::string, std::vector<std::vector<bool>>>* const seen_;
  std::set<size_t> stepped_;
};

World::World(unsigned seed, int64_t large_rows)
    : random_(seed), model_(TestModel(large_rows)) {
  for (size_t i = 0; i < model_.tables.size(); ++i) {
    if (model_.tables[i].kind == TableKind::kDense) {
      ChangeDense(i);
    } else {
      ChangeSparse(i);
    }
  }
}

std::string World::RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t at = 0; at < size; at += sizeof(uint64_t)) {
    const uint64_t number = random_();
    memcpy(&bytes[at], &number, std::min(size - at, sizeof number));
  }
  return bytes;
}

void World::ChangeDense(size_t table) {
  const TableDefinition& definition = model_.tables[table];
  Dense& dense = dense_[definition.name];
  dense.streams.clear();
  // Count a step only for a table with rows. A table without rows has no part
  // that could carry the step.
  if (Rows(definition) > 0) ++dense.step;
  for (size_t i = 0; i < Streams(definition); ++i) {
    dense.streams.push_back(
        RandomBytes(Rows(definition) * RowElements(definition) *
                    tensor::ElementSize(StreamType(definition, i))));
  }
  changed_dense_.insert(definition.name);
}

void World::ChangeSparse(size_t table) {
  const TableDefinition& definition = model_.tables[table];
  std::map<uint64_t, Row>& rows = sparse_[definition.name];
  std::set<uint64_t>& changed = changed_[definition.name];
  for (int i = 0; i < 40; ++i) {
    const uint64_t id = random_() % 100 + (i % 2 == 0 ? 0 : UINT64_MAX - 100);
    changed.insert(id);
    if (random_() % 4 == 0) {
      rows.erase(id);
    } else {
      rows[id] = {random_(), random_(), RandomBytes(RowBytes(definition))};
    }
  }
}

void World::Change() {
  for (size_t i = 0; i < model_.tables.size(); ++i) {
    if (model_.tables[i].kind == TableKind::kSparse) {
      ChangeSparse(i);
    } else if (random_() % 2 == 0) {
      ChangeDense(i);
    }
  }
}

void World::ChangeLittle() {
  ChangeDense(1);
  ChangeSparse(5);
}

void World::Clean() {
  changed_.clear();
  changed_dense_.clear();
}

std::vector<WorkerClock> World::clocks() const {
  return {{0, 17, 100}, {65535, UINT64_MAX, 99}};
}

NewCheckpoint World::Describe(uint64_t step, size_t servers,
                              absl::optional<uint64_t> base) const {
  NewCheckpoint checkpoint;
  checkpoint.step = step;
  checkpoint.model = model_;
  checkpoint.placement_epoch = 3;
  checkpoint.shards = servers;
  checkpoint.created_unix_seconds = 1764000000;
  checkpoint.base_step = base;
  return checkpoint;
}

absl::Status World::WriteDense(ShardWriter* writer, size_t table, size_t server,
                               size_t servers) const {
  const TableDefinition& definition = model_.tables[table];
  const Dense& dense = dense_.at(definition.name);
  DensePart part;
  part.table = table;
  part.first_row = FirstRow(definition, server, servers);
  part.rows = FirstRow(definition, server + 1, servers) - part.first_row;
  part.step = dense.step;
  for (size_t i = 0; i < Streams(definition); ++i) {
    const size_t row = RowElements(definition) *
                       tensor::ElementSize(StreamType(definition, i));
    part.streams.push_back(absl::string_view(dense.streams[i])
                               .substr(part.first_row * row, part.rows * row));
  }
  return writer->AddDense(part);
}

absl::Status World::WriteSparse(ShardWriter* writer, size_t table,
                                size_t server, size_t servers,
                                bool only_changed) const {
  const std::string& name = model_.tables[table].name;
  absl::Status status = writer->BeginSparse(table, kSparseStep);
  const std::map<uint64_t, Row>& rows = sparse_.at(name);
  std::set<uint64_t> ids;
  if (only_changed) {
    const auto changed = changed_.find(name);
    if (changed != changed_.end()) ids = changed->second;
  } else {
    for (const auto& row : rows) ids.insert(row.first);
  }
  for (uint64_t id : ids) {
    if (!status.ok()) return status;
    if (ServerOf(id, servers) != server) continue;
    const auto found = rows.find(id);
    if (found == rows.end()) {
      status = writer->RemoveRow(id);
      continue;
    }
    const auto& [last_use, count, bytes] = found->second;
    status = writer->AddRow({id, last_use, count, bytes});
  }
  return status;
}

absl::StatusOr<ShardInfo> World::WriteShard(Files* files,
                                            const Attempt& attempt,
                                            size_t server, size_t servers,
                                            bool only_changed) const {
  auto writer = ShardWriter::Create(files, &model_, attempt,
                                    static_cast<uint32_t>(server));
  if (!writer.ok()) return writer.status();
  for (size_t i = 0; i < model_.tables.size(); ++i) {
    absl::Status status = absl::OkStatus();
    if (model_.tables[i].kind == TableKind::kSparse) {
      status = WriteSparse(writer->get(), i, server, servers, only_changed);
    } else if (!only_changed ||
               changed_dense_.count(model_.tables[i].name) > 0) {
      status = WriteDense(writer->get(), i, server, servers);
    }
    if (!status.ok()) return status;
  }
  return (*writer)->Finish(clocks());
}

absl::Status World::Write(Files* files, Repository* repository, uint64_t step,
                          size_t servers, absl::optional<uint64_t> base) const {
  const auto attempt = repository->Begin(Describe(step, servers, base));
  if (!attempt.ok()) return attempt.status();
  std::vector<ShardInfo> shards;
  for (size_t i = servers; i-- > 0;) {
    const auto info = WriteShard(files, *attempt, i, servers, base.has_value());
    if (!info.ok()) {
      repository->Abort();
      return info.status();
    }
    shards.push_back(*info);
  }
  return repository->Commit(shards, {clocks(), absl::nullopt, absl::nullopt});
}

absl::StatusOr<World> World::Read(Files* files, const Chain& chain,
                                  size_t servers) {
  World world{Empty()};
  world.model_ = chain.model();
  Model ours = chain.model();
  std::reverse(ours.tables.begin(), ours.tables.end());
  std::map<std::string, std::vector<std::vector<bool>>> seen;
  for (const TableDefinition& table : ours.tables) {
    if (table.kind == TableKind::kSparse) {
      world.sparse_[table.name];
      continue;
    }
    const uint64_t elements = Rows(table) * RowElements(table);
    for (size_t i = 0; i < Streams(table); ++i) {
      world.dense_[table.name].streams.emplace_back(
          elements * tensor::ElementSize(StreamType(table, i)), '\0');
    }
    seen[table.name].assign(Streams(table), std::vector<bool>(elements));
  }
  for (size_t server = 0; server < servers; ++server) {
    Wanted wanted;
    for (size_t i = 0; i < ours.tables.size(); ++i) {
      const TableDefinition& table = ours.tables[i];
      if (table.kind == TableKind::kSparse) continue;
      const uint64_t first = FirstRow(table, server, servers);
      wanted.rows.push_back(
          {i, first, FirstRow(table, server + 1, servers) - first});
    }
    wanted.holds = [&](size_t, uint64_t id) {
      return ServerOf(id, servers) == server;
    };
    WorldSink sink(&world, ours, &seen);
    const absl::Status status = Restore(files, chain, ours, wanted, &sink);
    if (!status.ok()) return status;
  }
  for (const auto& [name, streams] : seen) {
    for (const std::vector<bool>& elements : streams) {
      if (std::count(elements.begin(), elements.end(), false) > 0) {
        return absl::InternalError(
            absl::StrCat("elements of ", name, " are missing"));
      }
    }
  }
  return world;
}

}  // namespace penstock::ps::checkpoint
