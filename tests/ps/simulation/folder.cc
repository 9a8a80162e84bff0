#include "tests/ps/simulation/folder.h"

#include <utility>

namespace penstock::ps {
namespace {

using State = ProcessFiles::State;

class Writable final : public checkpoint::WritableFile {
 public:
  Writable(std::shared_ptr<State> state,
           std::unique_ptr<checkpoint::WritableFile> file)
      : state_(std::move(state)), file_(std::move(file)) {}
  absl::StatusOr<size_t> Write(absl::string_view bytes) override {
    absl::MutexLock lock(&state_->folder->mu);
    absl::Status alive = state_->Begin();
    if (!alive.ok()) return alive;
    return file_->Write(bytes);
  }
  absl::Status Sync() override {
    absl::MutexLock lock(&state_->folder->mu);
    absl::Status alive = state_->Begin();
    return alive.ok() ? file_->Sync() : alive;
  }

 private:
  const std::shared_ptr<State> state_;
  const std::unique_ptr<checkpoint::WritableFile> file_;
};

class Readable final : public checkpoint::ReadableFile {
 public:
  Readable(std::shared_ptr<State> state,
           std::unique_ptr<checkpoint::ReadableFile> file)
      : state_(std::move(state)), file_(std::move(file)) {}
  uint64_t size() const override {
    absl::MutexLock lock(&state_->folder->mu);
    return file_->size();
  }
  absl::StatusOr<size_t> Read(uint64_t offset, char* to, size_t size) override {
    absl::MutexLock lock(&state_->folder->mu);
    absl::Status alive = state_->Begin();
    if (!alive.ok()) return alive;
    return file_->Read(offset, to, size);
  }

 private:
  const std::shared_ptr<State> state_;
  const std::unique_ptr<checkpoint::ReadableFile> file_;
};

}  // namespace

absl::Status ProcessFiles::State::Begin() {
  if (left >= 0 && left-- == 0) is_dead = true;
  return is_dead ? absl::AbortedError("the process is dead") : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<checkpoint::WritableFile>> ProcessFiles::Create(
    absl::string_view path) {
  absl::MutexLock lock(&state_->folder->mu);
  absl::Status alive = state_->Begin();
  if (!alive.ok()) return alive;
  auto file = state_->folder->files.Create(path);
  if (!file.ok()) return file.status();
  return std::make_unique<Writable>(state_, *std::move(file));
}

absl::StatusOr<std::unique_ptr<checkpoint::ReadableFile>> ProcessFiles::Open(
    absl::string_view path) {
  absl::MutexLock lock(&state_->folder->mu);
  absl::Status alive = state_->Begin();
  if (!alive.ok()) return alive;
  auto file = state_->folder->files.Open(path);
  if (!file.ok()) return file.status();
  return std::make_unique<Readable>(state_, *std::move(file));
}

absl::Status ProcessFiles::MakeFolder(absl::string_view path) {
  absl::MutexLock lock(&state_->folder->mu);
  absl::Status alive = state_->Begin();
  return alive.ok() ? state_->folder->files.MakeFolder(path) : alive;
}

absl::StatusOr<std::vector<checkpoint::FolderEntry>> ProcessFiles::List(
    absl::string_view folder) {
  absl::MutexLock lock(&state_->folder->mu);
  absl::Status alive = state_->Begin();
  if (!alive.ok()) return alive;
  return state_->folder->files.List(folder);
}

absl::Status ProcessFiles::Rename(absl::string_view from,
                                  absl::string_view to) {
  absl::MutexLock lock(&state_->folder->mu);
  absl::Status alive = state_->Begin();
  return alive.ok() ? state_->folder->files.Rename(from, to) : alive;
}

absl::Status ProcessFiles::Remove(absl::string_view path) {
  absl::MutexLock lock(&state_->folder->mu);
  absl::Status alive = state_->Begin();
  return alive.ok() ? state_->folder->files.Remove(path) : alive;
}

absl::Status ProcessFiles::RemoveFolder(absl::string_view path) {
  absl::MutexLock lock(&state_->folder->mu);
  absl::Status alive = state_->Begin();
  return alive.ok() ? state_->folder->files.RemoveFolder(path) : alive;
}

absl::Status ProcessFiles::SyncFolder(absl::string_view folder) {
  absl::MutexLock lock(&state_->folder->mu);
  absl::Status alive = state_->Begin();
  return alive.ok() ? state_->folder->files.SyncFolder(folder) : alive;
}

absl::StatusOr<std::unique_ptr<checkpoint::FileLock>> ProcessFiles::Lock(
    absl::string_view path) {
  absl::MutexLock lock(&state_->folder->mu);
  absl::Status alive = state_->Begin();
  if (!alive.ok()) return alive;
  return state_->folder->files.Lock(path);
}

}  // namespace penstock::ps
