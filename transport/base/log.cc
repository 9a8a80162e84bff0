#include "transport/base/log.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace base {
namespace {

spdlog::logger& Logger() {
  // Leaked: lines may come from threads that outlive main().
  static spdlog::logger* const logger = [] {
    auto* made = new spdlog::logger(
        "penstock", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%Y-%m-%dT%H:%M:%S.%e %l penstock[%P]: %v");
    const char* level = std::getenv("PENSTOCK_LOG");
    made->set_level(level == nullptr ? spdlog::level::info
                                     : spdlog::level::from_str(level));
    return made;
  }();
  return *logger;
}

spdlog::string_view_t View(absl::string_view text) {
  return spdlog::string_view_t(text.data(), text.size());
}

}  // namespace

void LogInfo(absl::string_view text) { Logger().info(View(text)); }
void LogWarning(absl::string_view text) { Logger().warn(View(text)); }
void LogError(absl::string_view text) { Logger().error(View(text)); }

}  // namespace base
}  // namespace penstock
