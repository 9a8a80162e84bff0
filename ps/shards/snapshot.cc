#include "ps/shards/snapshot.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/pace.h"
#include "ps/checkpoint/restore.h"
#include "ps/checkpoint/shard_reader.h"
#include "ps/checkpoint/shard_writer.h"
#include "ps/server/checkpoint_model.h"
#include "ps/server/checkpoint_shard.h"
#include "ps/server/tables_sink.h"

namespace penstock::ps {
namespace {

using checkpoint::FileLock;
using checkpoint::FolderEntry;
using checkpoint::ReadableFile;
using checkpoint::WritableFile;

// The name of a snapshot's file, equal at both sides.
constexpr checkpoint::Attempt kAttempt{1, 1};

class SinkFile final : public WritableFile {
 public:
  explicit SinkFile(const ByteSink& sink) : sink_(sink) {}
  absl::StatusOr<size_t> Write(absl::string_view bytes) override {
    absl::Status status = sink_(bytes);
    if (!status.ok()) return status;
    return bytes.size();
  }
  absl::Status Sync() override { return absl::OkStatus(); }

 private:
  const ByteSink sink_;
};

// A file in memory, in pieces of any size.
class PiecesFile final : public ReadableFile {
 public:
  explicit PiecesFile(const std::deque<tensor::Tensor>* pieces)
      : pieces_(pieces) {
    for (const tensor::Tensor& piece : *pieces) {
      starts_.push_back(size_);
      size_ += piece.byte_size();
    }
  }
  uint64_t size() const override { return size_; }
  absl::StatusOr<size_t> Read(uint64_t offset, char* to, size_t size) override {
    if (offset >= size_) return 0;
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
    const auto at = static_cast<size_t>(after - starts_.begin()) - 1;
    absl::string_view bytes = (*pieces_)[at].bytes();
    bytes.remove_prefix(static_cast<size_t>(offset - starts_[at]));
    bytes = bytes.substr(0, size);
    std::memcpy(to, bytes.data(), bytes.size());
    return bytes.size();
  }

 private:
  const std::deque<tensor::Tensor>* const pieces_;
  std::vector<uint64_t> starts_;
  uint64_t size_ = 0;
};

// A file system with the one file of a snapshot. Supports only Create() and
// Open().
class OneFile final : public checkpoint::Files {
 public:
  explicit OneFile(const ByteSink* sink) : sink_(sink) {}
  explicit OneFile(const std::deque<tensor::Tensor>* pieces)
      : pieces_(pieces) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view) override {
    if (sink_ == nullptr) return Unused();
    return std::make_unique<SinkFile>(*sink_);
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      absl::string_view) override {
    if (pieces_ == nullptr) return Unused();
    return std::make_unique<PiecesFile>(pieces_);
  }
  absl::Status MakeFolder(absl::string_view) override { return Unused(); }
  absl::StatusOr<std::vector<FolderEntry>> List(absl::string_view) override {
    return Unused();
  }
  absl::Status Rename(absl::string_view, absl::string_view) override {
    return Unused();
  }
  // Does nothing. Called because a writer that fails removes its file.
  absl::Status Remove(absl::string_view) override { return absl::OkStatus(); }
  absl::Status RemoveFolder(absl::string_view) override { return Unused(); }
  absl::Status SyncFolder(absl::string_view) override {
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(absl::string_view) override {
    return Unused();
  }

 private:
  static absl::Status Unused() {
    return absl::UnimplementedError("a snapshot is one file");
  }

  const ByteSink* const sink_ = nullptr;
  const std::deque<tensor::Tensor>* const pieces_ = nullptr;
};

// Restores the values of one shard. Checks that the file has all of them.
class PiecesSource final : public RestoreSource {
 public:
  PiecesSource(const std::deque<tensor::Tensor>* pieces,
               const SnapshotState& state)
      : files_(pieces), state_(state) {}

  absl::StatusOr<absl::optional<CutId>> Choose(bool) override {
    return absl::nullopt;
  }
  absl::Status Check(const absl::optional<CutId>&) override {
    return absl::OkStatus();
  }
  absl::StatusOr<RestoredModel> Restore(const CutId&, Tables* tables) override {
    const auto model = CheckpointModelOf(tables->model().model());
    if (!model.ok()) return model.status();
    checkpoint::Chain chain;
    chain.links.emplace_back();
    checkpoint::Manifest& manifest = chain.links.front().manifest;
    manifest.attempt = kAttempt;
    manifest.model = *model;
    manifest.shards = {{0, state_.bytes, state_.checksum}};
    const auto shard = checkpoint::ShardReader::Open(&files_, &*model, kAttempt,
                                                     manifest.shards.front());
    if (!shard.ok()) return shard.status();
    chain.links.front().footers.push_back((*shard)->footer());
    TablesSink sink(tables, std::vector<bool>(model->tables.size()));
    absl::Status status = sink.Begin();
    if (status.ok()) {
      status =
          checkpoint::Restore(&files_, chain, *model, sink.Wanted(), &sink);
    }
    if (status.ok()) status = sink.Finish();
    if (status.ok() && !sink.lost().empty()) {
      status = absl::ResourceExhaustedError(
          "the rows of the primary have no room here: give all servers the "
          "same --sparse-memory");
    }
    if (!status.ok()) return status;
    return state_.restored;
  }

 private:
  OneFile files_;
  const SnapshotState& state_;
};

}  // namespace

absl::Status WriteValues(const Server::Training& training,
                         ModelSnapshot snapshot,
                         const Cancellation* cancellation, const ByteSink& sink,
                         SnapshotState* state) {
  const auto model = CheckpointModelOf(training.tables->model().model());
  if (!model.ok()) return model.status();
  OneFile files(&sink);
  auto writer = checkpoint::ShardWriter::Create(&files, &*model, kAttempt, 0);
  if (!writer.ok()) return writer.status();
  checkpoint::Pace pace(1, [] { return uint64_t{0}; });
  ShardProgress progress;
  absl::Status status =
      WriteSnapshot(*training.tables, *model, absl::nullopt, cancellation,
                    &pace, std::move(snapshot), &progress, writer->get());
  if (!status.ok()) return status;
  const auto info = (*writer)->Finish({});
  if (!info.ok()) return info.status();
  state->bytes = info->bytes;
  state->checksum = info->checksum;
  return absl::OkStatus();
}

absl::Status RestoreValues(const std::deque<tensor::Tensor>& pieces,
                           const SnapshotState& state, Server* server) {
  PiecesSource source(&pieces, state);
  return server->DefineCopy(state.definition, {state.instance, state.hash_seed},
                            &source);
}

}  // namespace penstock::ps
