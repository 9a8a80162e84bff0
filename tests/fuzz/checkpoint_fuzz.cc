// Tests checkpoints from an attacker who can compute checksums: a manifest and
// one shard with arbitrary bytes.

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/format.h"
#include "ps/checkpoint/little_endian.h"
#include "ps/checkpoint/manifest.h"
#include "ps/checkpoint/names.h"
#include "ps/checkpoint/restore.h"
#include "ps/checkpoint/shard_writer.h"
#include "ps/checkpoint/verify.h"
#include "tensor_service/checksum.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"

namespace penstock {
namespace fuzz {
namespace {

namespace ck = ps::checkpoint;

constexpr uint64_t kStep = 1;
constexpr uint64_t kId = 7;

class Bytes : public ck::ReadableFile, public ck::WritableFile {
 public:
  explicit Bytes(std::string* bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_->size(); }
  absl::StatusOr<size_t> Read(uint64_t offset, char* to, size_t size) override {
    if (offset >= bytes_->size()) return 0;
    const size_t got = std::min<size_t>(size, bytes_->size() - offset);
    memcpy(to, bytes_->data() + offset, got);
    return got;
  }
  absl::StatusOr<size_t> Write(absl::string_view bytes) override {
    bytes_->append(bytes.data(), bytes.size());
    return bytes.size();
  }
  absl::Status Sync() override { return absl::OkStatus(); }

 private:
  std::string* const bytes_;
};

// A folder with one checkpoint of one shard.
class TwoFiles : public ck::Files {
 public:
  std::string manifest;
  std::string shard;

  absl::StatusOr<std::unique_ptr<ck::WritableFile>> Create(
      absl::string_view path) override {
    return std::make_unique<Bytes>(&shard);
  }
  absl::StatusOr<std::unique_ptr<ck::ReadableFile>> Open(
      absl::string_view path) override {
    if (path == ck::ManifestPath(kStep)) {
      return std::make_unique<Bytes>(&manifest);
    }
    if (absl::StartsWith(path, ck::StepFolder(kStep) + "/shard-00000-")) {
      return std::make_unique<Bytes>(&shard);
    }
    Require(!absl::StrContains(path, ".."), "no path leaves the root");
    return absl::NotFoundError(path);
  }
  absl::Status MakeFolder(absl::string_view) override { return {}; }
  absl::StatusOr<std::vector<ck::FolderEntry>> List(
      absl::string_view) override {
    return std::vector<ck::FolderEntry>();
  }
  absl::Status Rename(absl::string_view, absl::string_view) override {
    return {};
  }
  absl::Status Remove(absl::string_view) override { return {}; }
  absl::Status RemoveFolder(absl::string_view) override { return {}; }
  absl::Status SyncFolder(absl::string_view) override { return {}; }
  absl::StatusOr<std::unique_ptr<ck::FileLock>> Lock(
      absl::string_view) override {
    return absl::UnimplementedError("no lock");
  }
};

// Checks the promises that the reader makes to the consumer of rows.
class CheckingSink : public ck::Sink {
 public:
  explicit CheckingSink(const ck::Model& model) : model_(model) {}
  absl::Status TakeDense(const ck::DenseElements& elements) override {
    const ck::TableDefinition& table = model_.tables[elements.table];
    const size_t size =
        tensor::ElementSize(ck::StreamType(table, elements.stream));
    const uint64_t all = ck::Rows(table) * ck::RowElements(table);
    Require(elements.bytes.size() % size == 0, "elements are whole");
    Require(elements.first <= all &&
                elements.bytes.size() / size <= all - elements.first,
            "elements are in their table");
    return absl::OkStatus();
  }
  absl::Status TakeSparseStep(size_t table, uint64_t) override {
    Require(table < model_.tables.size(), "a table is in the model");
    return absl::OkStatus();
  }
  absl::Status TakeRow(size_t table, const ck::SparseRow& row) override {
    Require(row.bytes.size() == ck::RowBytes(model_.tables[table]),
            "a row has its bytes");
    return absl::OkStatus();
  }
  absl::Status DropRow(size_t, uint64_t) override { return absl::OkStatus(); }

 private:
  const ck::Model& model_;
};

ck::Model SmallModel() {
  return {{{"d",
            ck::TableKind::kDense,
            tensor::DType::kF32,
            {3, 2},
            {{"m", tensor::DType::kF64}}},
           {"s", ck::TableKind::kSparse, tensor::DType::kF32, {2}, {}}}};
}

// Writes at least one block of each kind. Returns the corresponding input.
std::string WholeCheckpoint(bool removes) {
  const ck::Model model = SmallModel();
  TwoFiles files;
  auto writer = *ck::ShardWriter::Create(&files, &model, {kStep, kId}, 0);
  const std::string value(24, 'v');
  const std::string slot(48, 'm');
  absl::Status status = writer->AddDense({0, 0, 3, 5, {value, slot}});
  status.Update(writer->BeginSparse(1, 6));
  status.Update(writer->AddRow({1, 2, 3, "01234567"}));
  if (removes) status.Update(writer->RemoveRow(9));
  const auto info = writer->Finish({{4, 5, 6}});
  Require(status.ok() && info.ok(), "our own is written");
  ck::Manifest manifest;
  manifest.attempt = {kStep, kId};
  manifest.model = model;
  manifest.shards.push_back(*info);
  const std::string message = *ck::Encode(manifest);
  return Number(static_cast<uint16_t>(message.size())) + message + files.shard;
}

void PutAt(size_t at, uint64_t number, std::string* bytes) {
  std::string encoded;
  ck::Put(number, &encoded);
  bytes->replace(at, encoded.size(), encoded);
}

// Repairs the checksums of the manifest and the headers, because almost any
// mutation breaks them. Without the repair, no mutation would reach the code
// after the check.
void PutChecksumsRight(TwoFiles* files) {
  std::string& manifest = files->manifest;
  if (manifest.size() >= ck::kManifestHeaderBytes) {
    std::string length;
    ck::Put(static_cast<uint32_t>(manifest.size() - ck::kManifestHeaderBytes),
            &length);
    manifest.replace(12, 4, length);
    PutAt(16,
          ck::Digest(tensor::ChecksumOf(absl::string_view(manifest).substr(
                         ck::kManifestHeaderBytes)),
                     manifest.substr(0, 16)),
          &manifest);
  }
  std::string& shard = files->shard;
  if (shard.size() < ck::kFileHeaderBytes + ck::kTrailerBytes) return;
  PutAt(24, tensor::ChecksumOf(absl::string_view(shard).substr(0, 24)), &shard);
  const absl::string_view all = shard;
  const auto trailer =
      ck::DecodeTrailer(all.substr(shard.size() - ck::kTrailerBytes));
  if (!trailer.ok() || trailer->offset > shard.size()) return;
  const uint64_t sum =
      tensor::ChecksumOf(all.substr(trailer->offset, trailer->length));
  PutAt(shard.size() - ck::kTrailerBytes + 16, sum, &shard);
  auto decoded = ck::DecodeManifest(manifest);
  if (!decoded.ok() || decoded->shards.empty()) return;
  decoded->shards[0].bytes = shard.size();
  decoded->shards[0].checksum = sum;
  manifest = *ck::Encode(*decoded);
  // Repairs the blocks' checksums, as long as each block leads to the next.
  size_t at = ck::kFileHeaderBytes;
  while (at + ck::kBlockHeaderBytes <= trailer->offset) {
    absl::string_view length = all.substr(at + 32, 8);
    const auto size = ck::Take<uint64_t>(&length);
    const size_t payload = at + ck::kBlockHeaderBytes;
    if (size > shard.size() - payload) return;
    PutAt(at + 40, tensor::ChecksumOf(all.substr(payload, size)), &shard);
    std::string id;
    ck::Put(decoded->attempt.id, &id);
    PutAt(at + 48, tensor::ChecksumOf(shard.substr(at, 48) + id), &shard);
    at = payload + size;
  }
}

void ReadAll(TwoFiles* files) {
  const auto found = ck::Verify(files, kStep);
  const auto chain = ck::OpenChain(files, kStep);
  if (!chain.ok()) {
    Require(!found.ok() || found->damaged > 0, "both see the damage");
    return;
  }
  ck::Wanted wanted;
  const ck::Model& model = chain->model();
  for (size_t i = 0; i < model.tables.size(); ++i) {
    if (model.tables[i].kind == ck::TableKind::kDense) {
      wanted.rows.push_back({i, 0, ck::Rows(model.tables[i])});
    }
  }
  wanted.holds = [](size_t, uint64_t) { return true; };
  CheckingSink sink(model);
  const absl::Status status = ck::Restore(files, *chain, model, wanted, &sink);
  // Requires that a checkpoint that verifies can be restored.
  Require(!found.ok() || found->damaged > 0 || status.ok(),
          "what is good comes back");
}

}  // namespace

std::vector<std::string> Seeds() {
  // Makes each seed twice: with and without the repair of checksums, which the
  // first byte enables.
  std::vector<std::string> seeds;
  for (bool removes : {false, true}) {
    seeds.push_back('\0' + WholeCheckpoint(removes));
    seeds.push_back('\1' + WholeCheckpoint(removes));
  }
  return seeds;
}

}  // namespace fuzz
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace penstock::fuzz;
  Input input(data, size);
  const bool right = input.Number<uint8_t>() % 2 == 1;
  TwoFiles files;
  const auto manifest_size = input.Number<uint16_t>();
  files.manifest = std::string(AsText(input.Bytes(manifest_size)));
  files.shard = std::string(AsText(input.Rest()));
  if (right) PutChecksumsRight(&files);
  ReadAll(&files);
  return 0;
}
