#include "ps/checkpoint/manifest.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/format.h"
#include "ps/checkpoint/little_endian.h"
#include "ps/checkpoint/manifest.pb.h"
#include "ps/checkpoint/names.h"
#include "tensor_service/checksum.h"

namespace penstock::ps::checkpoint {
namespace {

constexpr absl::string_view kMagic = "PSTKMANI";

absl::Status Damaged(absl::string_view what) {
  return absl::DataLossError(absl::StrCat("damaged: ", what));
}

uint64_t ChecksumOf(absl::string_view head, absl::string_view message) {
  return Digest(tensor::ChecksumOf(message), head);
}

void ToProto(const TableDefinition& table, v1::Table* out) {
  out->set_name(table.name);
  out->set_kind(static_cast<int>(table.kind));
  out->set_dtype(static_cast<int>(table.dtype));
  for (int64_t side : table.shape) out->add_shape(side);
  for (const SlotDefinition& slot : table.slots) {
    v1::Slot* const to = out->add_slots();
    to->set_name(slot.name);
    to->set_dtype(static_cast<int>(slot.dtype));
  }
}

v1::Manifest ToProto(const Manifest& manifest) {
  v1::Manifest out;
  out.set_id(manifest.attempt.id);
  out.set_step(manifest.attempt.step);
  out.set_placement_epoch(manifest.placement_epoch);
  out.set_created_unix_seconds(manifest.created_unix_seconds);
  for (const TableDefinition& table : manifest.model.tables) {
    ToProto(table, out.add_tables());
  }
  for (const uint64_t each : manifest.placements) out.add_placements(each);
  out.set_run(manifest.run);
  for (const uint64_t run : manifest.earlier_runs) out.add_earlier_runs(run);
  for (const std::string& server : manifest.servers) out.add_servers(server);
  if (manifest.cut.version.has_value()) out.set_version(*manifest.cut.version);
  if (manifest.cut.floor.has_value()) out.set_floor(*manifest.cut.floor);
  for (const WorkerClock& clock : manifest.cut.clocks) {
    v1::Clock* const to = out.add_clocks();
    to->set_rank(clock.rank);
    to->set_incarnation(clock.incarnation);
    to->set_clock(clock.clock);
  }
  for (const ShardInfo& shard : manifest.shards) {
    v1::Shard* const to = out.add_shards();
    to->set_bytes(shard.bytes);
    to->set_checksum(shard.checksum);
  }
  if (manifest.base.has_value()) {
    out.mutable_base()->set_step(manifest.base->step);
    out.mutable_base()->set_id(manifest.base->id);
  }
  out.set_depth(manifest.depth);
  return out;
}

absl::StatusOr<TableDefinition> FromProto(v1::Table* from) {
  TableDefinition table;
  if (from->kind() != static_cast<int>(TableKind::kDense) &&
      from->kind() != static_cast<int>(TableKind::kSparse)) {
    return Damaged("a table of an unknown kind");
  }
  if (!tensor::IsDType(from->dtype())) return Damaged("an unknown type");
  table.name = std::move(*from->mutable_name());
  table.kind = static_cast<TableKind>(from->kind());
  table.dtype = static_cast<tensor::DType>(from->dtype());
  table.shape.assign(from->shape().begin(), from->shape().end());
  for (v1::Slot& slot : *from->mutable_slots()) {
    if (!tensor::IsDType(slot.dtype())) return Damaged("an unknown type");
    table.slots.push_back({std::move(*slot.mutable_name()),
                           static_cast<tensor::DType>(slot.dtype())});
  }
  return table;
}

absl::StatusOr<Model> ModelOf(v1::Manifest* from) {
  Model model;
  for (v1::Table& table : *from->mutable_tables()) {
    absl::StatusOr<TableDefinition> definition = FromProto(&table);
    if (!definition.ok()) return definition.status();
    model.tables.push_back(*std::move(definition));
  }
  absl::Status status = CheckModel(model);
  if (!status.ok()) return Damaged(status.message());
  return model;
}

absl::Status CheckChain(const v1::Manifest& from) {
  if (from.has_base() != (from.depth() > 0) || from.depth() > kMaxDepth) {
    return Damaged("its chain is too long, or has no base");
  }
  if (from.has_base() && from.base().step() >= from.step()) {
    return Damaged("its base is not older than it");
  }
  return absl::OkStatus();
}

absl::StatusOr<Manifest> FromProto(v1::Manifest* from) {
  const absl::Status chain = CheckChain(*from);
  if (!chain.ok()) return chain;
  const auto shards = static_cast<size_t>(from->shards_size());
  if (shards == 0 || shards > kMaxShards) return Damaged("number of shards");
  absl::StatusOr<Model> model = ModelOf(from);
  if (!model.ok()) return model.status();
  Manifest manifest;
  manifest.attempt = {from->step(), from->id()};
  manifest.placement_epoch = from->placement_epoch();
  manifest.created_unix_seconds = from->created_unix_seconds();
  manifest.model = *std::move(model);
  const auto& placements = from->placements();
  if (!placements.empty() &&
      static_cast<size_t>(placements.size()) != manifest.model.tables.size()) {
    return Damaged("number of placements");
  }
  manifest.placements.assign(placements.begin(), placements.end());
  manifest.run = from->run();
  const auto& earlier = from->earlier_runs();
  if (static_cast<size_t>(earlier.size()) > kMaxEarlierRuns) {
    return Damaged("number of earlier runs");
  }
  manifest.earlier_runs.assign(earlier.begin(), earlier.end());
  manifest.servers.assign(from->servers().begin(), from->servers().end());
  if (from->has_version()) manifest.cut.version = from->version();
  if (from->has_floor()) manifest.cut.floor = from->floor();
  for (const v1::Clock& clock : from->clocks()) {
    manifest.cut.clocks.push_back(
        {clock.rank(), clock.incarnation(), clock.clock()});
  }
  for (const v1::Shard& shard : from->shards()) {
    const auto index = static_cast<uint32_t>(manifest.shards.size());
    manifest.shards.push_back({index, shard.bytes(), shard.checksum()});
  }
  if (from->has_base()) {
    manifest.base = Attempt{from->base().step(), from->base().id()};
  }
  manifest.depth = from->depth();
  return manifest;
}

}  // namespace

absl::StatusOr<std::string> Encode(const Manifest& manifest) {
  const std::string message = ToProto(manifest).SerializeAsString();
  if (message.size() > kMaxManifestBytes - kManifestHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a manifest of ", message.size(),
                     " bytes: too many tables or workers"));
  }
  std::string out(kMagic);
  Put(kFormatVersion, &out);
  Put(static_cast<uint32_t>(message.size()), &out);
  Put(ChecksumOf(out, message), &out);
  return out + message;
}

absl::StatusOr<Manifest> DecodeManifest(absl::string_view bytes) {
  if (bytes.size() < kManifestHeaderBytes ||
      bytes.substr(0, kMagic.size()) != kMagic) {
    return Damaged("it does not begin as a manifest does");
  }
  const absl::string_view message = bytes.substr(kManifestHeaderBytes);
  const absl::string_view head =
      bytes.substr(0, kManifestHeaderBytes - sizeof(uint64_t));
  absl::string_view rest = bytes.substr(kMagic.size());
  const auto version = Take<uint32_t>(&rest);
  const auto length = Take<uint32_t>(&rest);
  // Verify the checksum before the version: a flipped bit in the version must
  // not look like a newer format. A newer format keeps this header.
  if (length != message.size() ||
      Take<uint64_t>(&rest) != ChecksumOf(head, message)) {
    return Damaged("the manifest's length or checksum differs");
  }
  const absl::Status known = CheckVersion(version);
  if (!known.ok()) return known;
  v1::Manifest parsed;
  if (!parsed.ParseFromArray(message.data(),
                             static_cast<int>(message.size()))) {
    return Damaged("no message");
  }
  return FromProto(&parsed);
}

absl::StatusOr<Manifest> ReadManifest(Files* files, uint64_t step) {
  const std::string path = ManifestPath(step);
  auto file = files->Open(path);
  if (!file.ok()) return file.status();
  const uint64_t size = (*file)->size();
  const auto failed = [&](const absl::Status& status) {
    return absl::Status(status.code(),
                        absl::StrCat(path, ": ", status.message()));
  };
  if (size > kMaxManifestBytes) {
    return failed(Damaged(absl::StrCat("a manifest of ", size, " bytes")));
  }
  std::string bytes(size, '\0');
  const absl::Status read =
      ReadExactly(file->get(), 0, &bytes[0], bytes.size());
  if (!read.ok()) return failed(read);
  absl::StatusOr<Manifest> manifest = DecodeManifest(bytes);
  if (!manifest.ok()) return failed(manifest.status());
  if (manifest->attempt.step != step) {
    return failed(Damaged("it is another step's"));
  }
  return manifest;
}

}  // namespace penstock::ps::checkpoint
