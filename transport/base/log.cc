#include "transport/base/log.h"

#include <pthread.h>
#include <stdlib.h>  // secure_getenv
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/spdlog.h"
#include "transport/base/join_words.h"
#include "transport/base/printable.h"
#include "transport/base/steady_time.h"
#include "transport/base/token_bucket.h"
#include "transport/base/write_stderr.h"

namespace penstock {
namespace base {
namespace {

using Level = spdlog::level::level_enum;

std::atomic<uint64_t> left_out{0};

// A limit on the log lines of some levels.
struct Allowance {
  TokenBucket bucket{kLogBurst, absl::Seconds(1) / kLogLinesPerSecond};
  uint64_t left_out = 0;
};

// Writes lines within the limits. Spdlog calls the sink with mutex_ held.
class Sink : public spdlog::sinks::base_sink<std::mutex> {
 protected:
  void sink_it_(const spdlog::details::log_msg& line) override {
    Allowance* allowance = &allowances_[line.level > Level::info];
    if (!allowance->bucket.Take(SteadyNow())) {
      LeaveOut(allowance);
      return;
    }
    if (allowance->left_out > 0 && SayLeftOut(line, allowance->left_out)) {
      allowance->left_out = 0;
    }
    if (!Write(line)) LeaveOut(allowance);
  }
  void flush_() override {}

 private:
  static void LeaveOut(Allowance* allowance) {
    ++allowance->left_out;
    CountLogLineLeftOut();
  }

  bool SayLeftOut(spdlog::details::log_msg line, uint64_t count) {
    const std::string text = absl::StrCat(
        count, " lines were left out before this: nobody read them, or more ",
        "than ", kLogLinesPerSecond, " came in a second");
    line.payload = text;
    return Write(line);
  }

  // Writes a line. Does not use spdlog's formatter, because it calls
  // localtime_r(), which takes a lock of the C library. In the child of a fork,
  // that lock stays locked if another thread held it.
  static bool Write(const spdlog::details::log_msg& line) {
    const auto level = spdlog::level::to_string_view(line.level);
    return WriteToStderr(absl::StrCat(
        absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::FromChrono(line.time),
                         absl::UTCTimeZone()),
        " ", absl::string_view(level.data(), level.size()), " penstock[",
        getpid(), "]: ",
        absl::string_view(line.payload.data(), line.payload.size()), "\n"));
  }

  Allowance allowances_[2];  // [0]: up to information; [1]: warnings and errors
};

spdlog::string_view_t View(absl::string_view text) {
  return spdlog::string_view_t(text.data(), text.size());
}

// Sets the level that `text` names. Sets the default and returns false if there
// is no such level.
bool SetLevel(const std::string& text, spdlog::logger* logger) {
  const bool is_level = absl::c_linear_search(kLogLevels, text);
  logger->set_level(
      spdlog::level::from_str(is_level ? text : kDefaultLogLevel));
  return is_level;
}

// Leaked, because threads that outlive main() may log.
std::atomic<spdlog::logger*> current{nullptr};

// Makes the child of a fork create another logger. A thread of the parent may
// have held the lock of the parent's logger.
void ForgetLoggerInChild() { current.store(nullptr); }

// Registers the fork handler before main(). If the first log call registered
// it, a child forked at that moment would wait forever for the registering
// thread. Fails only if memory runs out.
const int registered = pthread_atfork(nullptr, nullptr, &ForgetLoggerInChild);

void Log(Level level, absl::string_view text);

spdlog::logger* Make() {
  auto made =
      std::make_unique<spdlog::logger>("penstock", std::make_shared<Sink>());
  const char* set = secure_getenv(kLogVariable);
  const bool is_set = set != nullptr && *set != '\0';
  const std::string level = is_set ? set : kDefaultLogLevel;
  const bool is_level = SetLevel(level, made.get());
  spdlog::logger* other = nullptr;
  if (!current.compare_exchange_strong(other, made.get())) return other;
  if (!is_level) {
    Log(Level::err,
        absl::StrCat(kLogVariable, "=", level, " is not a level: use ",
                     JoinWords(kLogLevels, "or")));
  }
  return made.release();
}

void Log(Level level, absl::string_view text) {
  spdlog::logger* logger = current.load();
  if (logger == nullptr) logger = Make();
  if (!logger->should_log(level)) return;
  logger->log(level, View(Printable(text, kMaxLogLineBytes)));
}

}  // namespace

uint64_t LogLinesLeftOut() { return left_out.load(); }
void CountLogLineLeftOut() { left_out.fetch_add(1); }

void LogInfo(absl::string_view text) { Log(Level::info, text); }
void LogWarning(absl::string_view text) { Log(Level::warn, text); }
void LogError(absl::string_view text) { Log(Level::err, text); }

}  // namespace base
}  // namespace penstock
