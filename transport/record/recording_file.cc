#include "transport/record/recording_file.h"

#include <unistd.h>
#include <zlib.h>

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
// Each time costs some bytes of the file.
constexpr absl::Duration kSyncInterval = absl::Seconds(1);

// Never destroyed: its thread goes on until the process ends.
RecordingFile* of_process = nullptr;

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
  auto opened = absl::WrapUnique(new RecordingFile(file, recorder, max_bytes));
  base::MutexLock lock(&opened->mu_);
  opened->WriteLocked(HeaderLine(absl::FormatTime(
      "%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone())));
  opened->SyncLocked();
  if (opened->file_ == nullptr) {
    return absl::ResourceExhaustedError(
        absl::StrCat("write a recording to ", path, ": its begin did not fit"));
  }
  return opened;
}

RecordingFile::RecordingFile(gzFile_s* file, Recorder* recorder,
                             int64_t max_bytes)
    : recorder_(recorder), max_bytes_(max_bytes), file_(file) {}

RecordingFile::~RecordingFile() { Close(); }

void RecordingFile::Flush() {
  base::MutexLock lock(&mu_);
  WriteQueuedLocked();
  if (unsynced_ && base::SteadyNow() - synced_ >= kSyncInterval) SyncLocked();
}

void RecordingFile::Close() {
  base::MutexLock lock(&mu_);
  WriteQueuedLocked();
  EndLocked("");
}

void RecordingFile::WriteQueuedLocked() {
  const std::vector<Part> parts = recorder_->Take();
  const uint64_t left_out = recorder_->TakeLeftOut();
  for (const Part& part : parts) {
    WriteLocked(ToLine(part));
  }
  if (left_out > 0) WriteLocked(LeftOutLine(left_out));
}

void RecordingFile::WriteLocked(absl::string_view text) {
  if (file_ == nullptr) return;
  if (gzoffset(file_) >= max_bytes_) {
    return EndLocked("the recording ends here: it has its full size");
  }
  const int written =
      gzwrite(file_, text.data(), static_cast<unsigned>(text.size()));
  if (written != static_cast<int>(text.size())) return EndLocked(ErrorLocked());
  unsynced_ = true;
}

void RecordingFile::SyncLocked() {
  if (file_ == nullptr) return;
  if (gzflush(file_, Z_SYNC_FLUSH) != Z_OK) return EndLocked(ErrorLocked());
  unsynced_ = false;
  synced_ = base::SteadyNow();
}

std::string RecordingFile::ErrorLocked() const {
  int code = Z_OK;
  const char* const text = gzerror(file_, &code);
  return absl::StrCat(
      "the recording ends here: ",
      code == Z_ERRNO ? base::ErrnoStatus(errno, "write").message() : text);
}

void RecordingFile::EndLocked(absl::string_view why) {
  gzFile_s* const file = std::exchange(file_, nullptr);
  if (file == nullptr) return;
  recorder_->Stop();
  const bool closed = gzclose(file) == Z_OK;
  if (!why.empty()) {
    base::LogWarning(why);
  } else if (!closed) {
    base::LogWarning("the end of the recording could not be written");
  }
}

absl::Status RecordTo(const std::string& path) {
  auto* const recorder = new Recorder;
  absl::StatusOr<std::unique_ptr<RecordingFile>> file = RecordingFile::Open(
      absl::StrReplaceAll(path, {{"%p", absl::StrCat(getpid())}}), recorder);
  if (!file.ok()) {
    delete recorder;
    return file.status();
  }
  of_process = file->release();
  Recorder::SetOfProcess(recorder);
  std::atexit(FinishRecording);
  return progress::StartDetachedThread(
      "penstock-record",
      [](void* recording) -> void* {
        for (;; absl::SleepFor(kPause)) {
          static_cast<RecordingFile*>(recording)->Flush();
        }
      },
      of_process);
}

void FinishRecording() {
  if (Recorder::OfProcess() != nullptr) of_process->Close();
}

}  // namespace record
}  // namespace penstock
