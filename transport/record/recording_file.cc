#include "transport/record/recording_file.h"

#include <unistd.h>
#include <zlib.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "transport/base/log.h"
#include "transport/base/output_file.h"
#include "transport/base/status_util.h"
#include "transport/base/steady_time.h"
#include "transport/progress/detached_thread.h"

namespace penstock {
namespace record {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(100);
// The interval between syncs of the compressed stream. Each sync costs some
// bytes of the file.
constexpr absl::Duration kSyncInterval = absl::Seconds(1);

// The recording of this process. Never destroyed, because its thread may use it
// until the process ends.
std::atomic<RecordingFile*> of_process{nullptr};
pid_t pid_of_process = 0;  // of the creator of `of_process`, not of the child
                           // of a fork

}  // namespace

constexpr int64_t RecordingFile::kMaxFileBytes;

absl::StatusOr<std::unique_ptr<RecordingFile>> RecordingFile::Open(
    const std::string& path, Recorder* recorder, int64_t max_bytes) {
  absl::StatusOr<base::UniqueFd> fd =
      base::OpenOutputFile(path, "write a recording to");
  if (!fd.ok()) return fd.status();
  gzFile_s* const file = gzdopen(fd->get(), "wb");
  if (file == nullptr) {
    return base::ErrnoStatus(ENOMEM, "write a recording");
  }
  fd->Release();
  auto opened =
      absl::WrapUnique(new RecordingFile(path, file, recorder, max_bytes));
  const absl::Status begun = opened->Begin();
  if (begun.ok()) return opened;
  return absl::Status(begun.code(), absl::StrCat("write a recording to ", path,
                                                 ": ", begun.message()));
}

absl::Status RecordingFile::Begin() {
  const base::FileSizeSignalBlock block;
  base::MutexLock lock(&mu_);
  absl::Status status = WriteLocked(HeaderLine(absl::FormatTime(
      "%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone())));
  if (status.ok()) status = SyncLocked();
  if (!status.ok()) gzclose(std::exchange(file_, nullptr));
  return status;
}

RecordingFile::RecordingFile(const std::string& path, gzFile_s* file,
                             Recorder* recorder, int64_t max_bytes)
    : path_(path), recorder_(recorder), max_bytes_(max_bytes), file_(file) {}

RecordingFile::~RecordingFile() { Close(); }

bool RecordingFile::Flush() {
  const base::FileSizeSignalBlock block;
  base::MutexLock lock(&mu_);
  if (file_ == nullptr) return false;
  absl::Status status = WriteQueuedLocked();
  if (status.ok() && unsynced_ &&
      base::SteadyNow() - synced_ >= kSyncInterval) {
    status = SyncLocked();
  }
  if (!status.ok()) EndLocked(status);
  return file_ != nullptr;
}

void RecordingFile::Close() {
  const base::FileSizeSignalBlock block;
  base::MutexLock lock(&mu_);
  if (file_ != nullptr) EndLocked(WriteQueuedLocked());
}

absl::Status RecordingFile::WriteQueuedLocked() {
  const std::vector<Part> parts = recorder_->Take();
  const uint64_t left_out = recorder_->TakeLeftOut();
  absl::Status status;
  for (size_t i = 0; i < parts.size() && status.ok(); ++i) {
    status = WriteLocked(ToLine(parts[i]));
  }
  if (left_out > 0 && status.ok()) status = WriteLocked(LeftOutLine(left_out));
  return status;
}

absl::Status RecordingFile::WriteLocked(absl::string_view text) {
  if (gzoffset(file_) >= max_bytes_) {
    return absl::ResourceExhaustedError("the file has reached its limit");
  }
  const int written =
      gzwrite(file_, text.data(), static_cast<unsigned>(text.size()));
  if (written != static_cast<int>(text.size())) return ErrorLocked();
  unsynced_ = true;
  return absl::OkStatus();
}

absl::Status RecordingFile::SyncLocked() {
  if (gzflush(file_, Z_SYNC_FLUSH) != Z_OK) return ErrorLocked();
  unsynced_ = false;
  synced_ = base::SteadyNow();
  return absl::OkStatus();
}

absl::Status RecordingFile::ErrorLocked() const {
  const int error_number = errno;
  int code = Z_OK;
  const char* const text = gzerror(file_, &code);
  return code == Z_ERRNO ? base::WriteError(error_number)
                         : absl::InternalError(text);
}

void RecordingFile::EndLocked(const absl::Status& why) {
  recorder_->Stop();
  const int closed = gzclose(std::exchange(file_, nullptr));
  if (!why.ok()) {
    base::LogWarning(absl::StrCat("the recording in ", path_,
                                  " ends here: ", why.message()));
  } else if (closed != Z_OK) {
    base::LogWarning(absl::StrCat(
        "the end of the recording in ", path_,
        " could not be written: ", base::WriteError(errno).message()));
  }
}

absl::Status RecordTo(const std::string& path) {
  auto recorder = absl::make_unique<Recorder>();
  absl::StatusOr<std::unique_ptr<RecordingFile>> file = RecordingFile::Open(
      absl::StrReplaceAll(path, {{"%p", absl::StrCat(getpid())}}),
      recorder.get());
  if (!file.ok()) return file.status();
  // Sets the recorder only after the thread that writes was started.
  const absl::Status started = progress::StartDetachedThread(
      "penstock-record",
      [](void* recording) -> void* {
        while (static_cast<RecordingFile*>(recording)->Flush()) {
          absl::SleepFor(kPause);
        }
        return nullptr;
      },
      file->get());
  if (!started.ok()) {
    return absl::Status(
        started.code(),
        absl::StrCat("write a recording to ", path, ": ", started.message()));
  }
  pid_of_process = getpid();
  of_process.store(file->release(), std::memory_order_release);
  Recorder::SetOfProcess(recorder.release());
  std::atexit(FinishRecording);
  return absl::OkStatus();
}

void FinishRecording() {
  RecordingFile* const file = of_process.load(std::memory_order_acquire);
  if (file != nullptr && pid_of_process == getpid()) file->Close();
}

}  // namespace record
}  // namespace penstock
