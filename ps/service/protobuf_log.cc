#include "ps/service/protobuf_log.h"

#include <string>

#include "google/protobuf/stubs/logging.h"
#include "transport/base/log.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

void Log(google::protobuf::LogLevel /*level*/, const char* /*file*/,
         int /*line*/, const std::string& message) {
  base::LogWarning("ps: protobuf: " +
                   base::Printable(message, base::kMaxLogLineBytes));
}

}  // namespace

void TakeProtobufLog() { google::protobuf::SetLogHandler(&Log); }

}  // namespace penstock::ps
