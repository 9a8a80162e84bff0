// What a recording says of a call.

#ifndef PENSTOCK_TRANSPORT_RECORD_PART_H_
#define PENSTOCK_TRANSPORT_RECORD_PART_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock {
namespace record {

// One message of a call, of the size that the server's application sees.
struct Message {
  int64_t after_us;  // the call's begin
  uint64_t bytes;
  bool sent;  // by the server
};

// A line of the file. A call has one, unless it has more messages than that
// holds: then several, of which only the first says what call it is, and only
// the last says how it ended.
struct Part {
  static constexpr size_t kMaxMessages = 256;
  static constexpr size_t kMaxMethodBytes = 255;

  uint64_t call = 0;
  bool is_first = true;
  uint64_t client = 0;   // counts connections
  std::string method;    // "/package.Service/Method"
  int64_t begun_us = 0;  // since the recording began
  std::vector<Message> messages;
  bool is_last = false;
  int64_t ended_after_us = 0;
  int status = 0;  // gRPC's code
};

// The first line of a file, which names the version of the format.
std::string HeaderLine(absl::string_view utc_time);
// A line of JSON, with its line feed. It has nothing that needs an escape:
// other characters of the method than those of an identifier, a dot, a slash
// and a hyphen become underscores.
std::string ToLine(const Part& part);
// Says that so many calls are missing, or that what follows in them is.
std::string LeftOutLine(uint64_t calls);

}  // namespace record
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RECORD_PART_H_
