#include "transport/base/log.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace base {
namespace {

spdlog::string_view_t View(absl::string_view text) {
  return spdlog::string_view_t(text.data(), text.size());
}

void SetLevel(const std::string& text, spdlog::logger* logger) {
  for (const char* known : {"debug", "info", "warning", "error", "off"}) {
    if (text != known) continue;
    logger->set_level(spdlog::level::from_str(text));
    return;
  }
  logger->set_level(spdlog::level::info);
  logger->error(
      "PENSTOCK_LOG={} is not a level: use debug, info, warning, error or off",
      text);
}

spdlog::logger& Logger() {
  // Leaked: lines may come from threads that outlive main().
  static spdlog::logger* const logger = [] {
    auto* made = new spdlog::logger(
        "penstock", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l penstock[%P]: %v");
    const char* level = std::getenv("PENSTOCK_LOG");
    SetLevel(level == nullptr ? "info" : level, made);
    return made;
  }();
  return *logger;
}

}  // namespace

void LogInfo(absl::string_view text) { Logger().info(View(text)); }
void LogWarning(absl::string_view text) { Logger().warn(View(text)); }
void LogError(absl::string_view text) { Logger().error(View(text)); }

}  // namespace base
}  // namespace penstock
