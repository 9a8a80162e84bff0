// A recorded call.

#ifndef PENSTOCK_TRANSPORT_RECORD_PART_H_
#define PENSTOCK_TRANSPORT_RECORD_PART_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock {
namespace record {

// One message of a call, with the size that the server's application sees.
struct Message {
  int64_t after_us;  // since the call's begin
  uint64_t bytes;
  bool sent;  // by the server
};

// A line of the file. A call takes one line, or several if its messages do not
// fit into one line. Only the first line describes the call, and only the last
// line has the call's end.
struct Part {
  static constexpr size_t kMaxMessages = 256;
  static constexpr size_t kMaxMethodBytes = 255;

  uint64_t call = 0;
  bool is_first = true;
  uint64_t client = 0;   // the connection's number
  std::string method;    // "/package.Service/Method"
  int64_t begun_us = 0;  // since the recording began
  std::vector<Message> messages;
  bool is_last = false;
  int64_t ended_after_us = 0;
  int status = 0;  // gRPC's code
};

// Returns the first line of a file, which names the version of the format.
std::string HeaderLine(absl::string_view utc_time);
// Returns a line of JSON, with its line feed. In the method, underscores
// replace all characters except those of an identifier, dots, slashes and
// hyphens. The method therefore needs no escapes in JSON.
std::string ToLine(const Part& part);
// Returns a line which says that `calls` calls are missing or incomplete.
std::string LeftOutLine(uint64_t calls);

}  // namespace record
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RECORD_PART_H_
