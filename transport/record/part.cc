#include "transport/record/part.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace record {
namespace {

constexpr int kVersion = 1;

std::string Plain(absl::string_view method) {
  std::string plain(method.substr(0, Part::kMaxMethodBytes));
  for (char& c : plain) {
    const bool keeps = absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                       c == '.' || c == '/' || c == '_' || c == '-';
    if (!keeps) c = '_';
  }
  return plain;
}

}  // namespace

constexpr size_t Part::kMaxMessages;
constexpr size_t Part::kMaxMethodBytes;

std::string HeaderLine(absl::string_view utc_time) {
  return absl::StrCat(R"({"penstock_recording":)", kVersion, R"(,"time":")",
                      utc_time, "\"}\n");
}

std::string ToLine(const Part& part) {
  std::string line = absl::StrCat(R"({"call":)", part.call);
  if (part.is_first) {
    absl::StrAppend(&line, R"(,"client":)", part.client, R"(,"method":")",
                    Plain(part.method), R"(","at":)", part.begun_us);
  }
  absl::StrAppend(&line, R"(,"messages":[)");
  const char* separator = "";
  for (const Message& message : part.messages) {
    absl::StrAppend(&line, separator, "[", message.after_us,
                    message.sent ? R"(,">",)" : R"(,"<",)", message.bytes, "]");
    separator = ",";
  }
  absl::StrAppend(&line, "]");
  if (part.is_last) {
    absl::StrAppend(&line, R"(,"end":)", part.ended_after_us, R"(,"status":)",
                    part.status);
  }
  absl::StrAppend(&line, "}\n");
  return line;
}

std::string LeftOutLine(uint64_t calls) {
  return absl::StrCat(R"({"left_out":)", calls, "}\n");
}

}  // namespace record
}  // namespace penstock
