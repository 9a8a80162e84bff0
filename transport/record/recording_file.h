// Writes the recorder's parts to a file.

#ifndef PENSTOCK_TRANSPORT_RECORD_RECORDING_FILE_H_
#define PENSTOCK_TRANSPORT_RECORD_RECORDING_FILE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "transport/base/mutex.h"
#include "transport/base/unique_fd.h"
#include "transport/record/recorder.h"

struct gzFile_s;

namespace penstock {
namespace record {

// A file of JSON lines, compressed by gzip: docs/replay.md has the format.
// Thread-safe.
class RecordingFile {
 public:
  // Limits the size of the compressed file, in bytes. One more line may follow.
  static constexpr int64_t kMaxFileBytes = 64 * 1024 * 1024;

  // Opens `path` by base::OpenOutputFile(), and writes the header. `recorder`
  // must outlive the file.
  static absl::StatusOr<std::unique_ptr<RecordingFile>> Open(
      const std::string& path, Recorder* recorder,
      int64_t max_bytes = kMaxFileBytes);
  RecordingFile(const RecordingFile&) = delete;
  RecordingFile& operator=(const RecordingFile&) = delete;
  ~RecordingFile();

  // Writes all queued parts. Once a second, also syncs the compressed stream,
  // so that the file is readable even if the process is killed. If the file is
  // full, or a write fails, for example because the disk is full, logs a line,
  // closes the file and stops the recorder. Returns true if the file is still
  // open.
  bool Flush();
  // Writes all queued parts, and closes the file.
  void Close();

 private:
  RecordingFile(const std::string& path, gzFile_s* file, Recorder* recorder,
                int64_t max_bytes);

  // Closes the file on an error.
  absl::Status Begin();
  // Write and sync the compressed stream. Require an open file.
  absl::Status WriteLocked(absl::string_view text)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status WriteQueuedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status SyncLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ErrorLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the file. `why` is an error for the log, or OK for a regular end.
  void EndLocked(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string path_;
  Recorder* const recorder_;
  const int64_t max_bytes_;
  mutable base::Mutex mu_;
  gzFile_s* file_ ABSL_GUARDED_BY(mu_);  // null once it has ended
  bool unsynced_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time synced_ ABSL_GUARDED_BY(mu_);
};

// Records the calls of this process's servers to `path` from now on, on a
// thread of its own, until the process exits. "%p" in the path stands for the
// pid. Call it once; after an error it may be called again.
absl::Status RecordTo(const std::string& path);
// Ends the recording, if one has begun.
void FinishRecording();

}  // namespace record
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RECORD_RECORDING_FILE_H_
