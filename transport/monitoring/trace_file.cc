#include "transport/monitoring/trace_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "transport/base/log.h"
#include "transport/base/mutex.h"
#include "transport/base/output_file.h"
#include "transport/base/unique_fd.h"
#include "transport/metrics/trace.h"
#include "transport/progress/detached_thread.h"

namespace penstock {
namespace monitoring {
namespace {

using metrics::Trace;
using metrics::TraceEvent;

constexpr absl::Duration kPause = absl::Milliseconds(100);
// Limits the size of the file, in bytes: some two million events. Viewers do
// not open larger files.
constexpr off_t kMaxFileBytes = 256 * 1024 * 1024;
// The end of the file, after the last event. The next event overwrites it.
constexpr absl::string_view kEnd = "\n]\n";

const char* NameOf(const TraceEvent& event) {
  switch (event.kind) {
    case TraceEvent::Kind::kStream:
      return event.role == metrics::Role::kClient ? "call" : "handling";
    case TraceEvent::Kind::kAnnounced:
      return "announced message";
    case TraceEvent::Kind::kRead:
      return "reading";
  }
  return "";
}

// Returns the id of an event, which is unique in the process. Calls of one
// connection overlap. Therefore each event is a pair of asynchronous events
// with the same id. The file says that ids are local to a process, for viewers
// that show the files of several processes.
std::string IdOf(const TraceEvent& event) {
  return absl::StrCat(static_cast<int>(event.kind), ".", event.connection, ".",
                      event.stream, ".", event.id);
}

std::string ToJson(const TraceEvent& event) {
  const std::string common =
      absl::StrCat(R"(","cat":"penstock","id2":{"local":")", IdOf(event),
                   R"("},"pid":)", getpid(), R"(,"tid":)", event.connection,
                   R"(,"name":")", NameOf(event), R"(","ts":)");
  std::string text = absl::StrCat(
      R"({"ph":"b)", common, absl::StrFormat("%.3f", event.begun_ns / 1e3),
      R"(,"args":{"path":")",
      metrics::ValuesOf(
          metrics::Label::kFabric)[static_cast<size_t>(event.fabric)],
      R"(","stream":)", event.stream);
  if (event.kind == TraceEvent::Kind::kStream) {
    absl::StrAppend(&text, R"(,"status":)", event.ok ? "true" : "false");
  } else {
    absl::StrAppend(&text, R"(,"bytes":)", event.bytes);
  }
  absl::StrAppend(&text, "}},\n", R"({"ph":"e)", common,
                  absl::StrFormat("%.3f", event.ended_ns / 1e3), "}");
  return text;
}

class TraceFile {
 public:
  TraceFile(Trace* trace, base::UniqueFd file)
      : trace_(trace), pid_(getpid()), file_(std::move(file)) {}

  // Writes all queued events.
  void Flush() {
    if (getpid() != pid_) return;
    const base::FileSizeSignalBlock block;
    base::MutexLock lock(&mu_);
    std::string text;
    uint64_t written = 0;
    const std::vector<TraceEvent> events = trace_->Take();
    for (const TraceEvent& event : events) {
      if (size_ + static_cast<off_t>(text.size()) > kMaxFileBytes) {
        Stop("the file has reached its limit");
      }
      if (stopped_) break;
      absl::StrAppend(&text, is_empty_ ? "\n" : ",\n", ToJson(event));
      is_empty_ = false;
      ++written;
    }
    if (written != 0 && !Write(text)) written = 0;
    if (written != events.size()) trace_->CountDropped(events.size() - written);
  }

  // Writes an array without events.
  void Begin() {
    const base::FileSizeSignalBlock block;
    base::MutexLock lock(&mu_);
    (void)Write("[");
  }

  [[noreturn]] void Run() {
    while (true) {
      Flush();
      absl::SleepFor(kPause);
    }
  }

 private:
  // Appends `text`, and ends the array. After a failure, returns false, and the
  // file keeps its old contents for good.
  bool Write(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const absl::Status status = WriteAtEnd(absl::StrCat(text, kEnd));
    if (status.ok()) {
      size_ += static_cast<off_t>(text.size());
      return true;
    }
    // Writes the end marker again, because some bytes may have been written
    // over it. There is room for the marker even on a full disk, because it was
    // there before.
    const bool restored =
        WriteAtEnd(std::string(kEnd)).ok() &&
        ftruncate(file_.get(), size_ + static_cast<off_t>(kEnd.size())) == 0;
    Stop(absl::StrCat(status.message(), restored ? "" : ", in an event"));
    return false;
  }

  absl::Status WriteAtEnd(const std::string& bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    size_t written = 0;
    while (written < bytes.size()) {
      const ssize_t step =
          pwrite(file_.get(), bytes.data() + written, bytes.size() - written,
                 size_ + static_cast<off_t>(written));
      if (step < 0 && errno == EINTR) continue;
      if (step <= 0) return base::WriteError(errno);
      written += static_cast<size_t>(step);
    }
    return absl::OkStatus();
  }

  void Stop(absl::string_view why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (std::exchange(stopped_, true)) return;
    base::LogWarning(
        absl::StrCat("PENSTOCK_TRACE: the trace ends here: ", why));
  }

  Trace* const trace_;
  const pid_t pid_;
  const base::UniqueFd file_;
  base::Mutex mu_;
  off_t size_ ABSL_GUARDED_BY(mu_) = 0;  // without kEnd
  bool is_empty_ ABSL_GUARDED_BY(mu_) = true;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
};

// The file of this process. Never destroyed, because its thread runs until the
// process ends.
TraceFile* of_process = nullptr;

}  // namespace

absl::Status WriteTraceTo(const std::string& path) {
  absl::StatusOr<base::UniqueFd> file = base::OpenOutputFile(
      absl::StrReplaceAll(path, {{"%p", absl::StrCat(getpid())}}),
      "write a trace to");
  if (!file.ok()) return file.status();
  of_process = new TraceFile(Trace::Begin(), *std::move(file));
  of_process->Begin();
  std::atexit([] { of_process->Flush(); });
  return progress::StartDetachedThread(
      "penstock-trace",
      [](void* trace) -> void* { static_cast<TraceFile*>(trace)->Run(); },
      of_process);
}

}  // namespace monitoring
}  // namespace penstock
