// Writes checkpoints, and kills itself at an operation that its caller chooses.
//
//   trainer ROOT OPERATION
//
// Prints "done STEP" after each checkpoint, and "operations N" at the end. The
// step determines the content of its checkpoint.

#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ps/checkpoint/posix_files.h"
#include "ps/checkpoint/repository.h"
#include "tests/ps/checkpoint/trained.h"

namespace penstock::ps::checkpoint {
namespace {

long operations = 0;
long killed_at = -1;

// Returns true if this operation is the last.
bool IsLast() { return operations++ == killed_at; }

void KillIfLast() {
  if (IsLast()) kill(getpid(), SIGKILL);
}

class KilledWritable : public WritableFile {
 public:
  explicit KilledWritable(std::unique_ptr<WritableFile> file)
      : file_(std::move(file)) {}
  absl::StatusOr<size_t> Write(absl::string_view bytes) override {
    if (IsLast()) {
      file_->Write(bytes.substr(0, bytes.size() / 2)).status().IgnoreError();
      kill(getpid(), SIGKILL);
    }
    return file_->Write(bytes);
  }
  absl::Status Sync() override {
    KillIfLast();
    return file_->Sync();
  }

 private:
  const std::unique_ptr<WritableFile> file_;
};

class KilledFiles : public Files {
 public:
  explicit KilledFiles(std::unique_ptr<Files> files)
      : files_(std::move(files)) {}
  absl::StatusOr<std::unique_ptr<WritableFile>> Create(
      absl::string_view path) override {
    KillIfLast();
    auto file = files_->Create(path);
    if (!file.ok()) return file.status();
    return std::make_unique<KilledWritable>(*std::move(file));
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> Open(
      absl::string_view path) override {
    return files_->Open(path);
  }
  absl::Status MakeFolder(absl::string_view path) override {
    KillIfLast();
    return files_->MakeFolder(path);
  }
  absl::StatusOr<std::vector<FolderEntry>> List(
      absl::string_view folder) override {
    return files_->List(folder);
  }
  absl::Status Rename(absl::string_view from, absl::string_view to) override {
    KillIfLast();
    return files_->Rename(from, to);
  }
  absl::Status Remove(absl::string_view path) override {
    KillIfLast();
    return files_->Remove(path);
  }
  absl::Status RemoveFolder(absl::string_view path) override {
    KillIfLast();
    return files_->RemoveFolder(path);
  }
  absl::Status SyncFolder(absl::string_view folder) override {
    KillIfLast();
    return files_->SyncFolder(folder);
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(
      absl::string_view path) override {
    KillIfLast();
    return files_->Lock(path);
  }

 private:
  const std::unique_ptr<Files> files_;
};

int Fail(const absl::Status& status) {
  std::printf("failed %s\n", status.ToString().c_str());
  return 1;
}

int Main(const std::string& root) {
  auto folder = OpenFolder(root);
  if (!folder.ok()) return Fail(folder.status());
  KilledFiles files(*std::move(folder));
  auto repository = Repository::Open(&files);
  if (!repository.ok()) return Fail(repository.status());
  absl::optional<uint64_t> base;
  for (uint64_t step = 1; step <= kTrainedSteps; ++step) {
    absl::Status status =
        Trained(step).Write(&files, repository->get(), step, 2, base);
    if (!status.ok()) return Fail(status);
    std::printf("done %d\n", static_cast<int>(step));
    std::fflush(stdout);
    // Makes the second and the fourth checkpoint incremental.
    base = step % 2 == 1 ? absl::optional<uint64_t>(step) : absl::nullopt;
    const auto pruned = (*repository)->Prune(2);
    if (!pruned.ok()) return Fail(pruned.status());
  }
  std::printf("operations %ld\n", operations);
  return 0;
}

}  // namespace
}  // namespace penstock::ps::checkpoint

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  penstock::ps::checkpoint::killed_at = std::atol(argv[2]);
  return penstock::ps::checkpoint::Main(argv[1]);
}
