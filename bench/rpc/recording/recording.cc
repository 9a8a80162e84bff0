#include "bench/rpc/recording/recording.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace penstock {
namespace bench {
namespace {

using Json = nlohmann::json;

constexpr int64_t kVersion = 1;
// The maximal length of a line in bytes. A part of a call with 256 messages
// takes about 10 kB.
constexpr int kMaxLineBytes = 64 * 1024;
constexpr int64_t kMaxMicros = int64_t{400} * 24 * 3600 * 1000 * 1000;
constexpr int64_t kMaxMessageBytes = int64_t{1} << 30;
constexpr int64_t kMaxStatus = 16;
constexpr size_t kMaxMethodBytes = 255;

// Reads a number between 0 and `max`.
absl::Status ReadNumber(const Json& value, absl::string_view name, int64_t max,
                        int64_t* out) {
  // Rejects numbers above 64 bits first, because the parser converts them to
  // floating-point.
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() &&
       value.get<uint64_t>() > static_cast<uint64_t>(max)) ||
      value.get<int64_t>() < 0 || value.get<int64_t>() > max) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is ", value.dump().substr(0, 40),
                     ", and not a whole number between 0 and ", max));
  }
  *out = value.get<int64_t>();
  return absl::OkStatus();
}

absl::Status ReadField(const Json& object, const char* name, int64_t max,
                       int64_t* out) {
  const auto found = object.find(name);
  if (found == object.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", name, "\" is missing"));
  }
  return ReadNumber(*found, name, max, out);
}

absl::StatusOr<RecordedMessage> ReadMessage(const Json& value) {
  if (!value.is_array() || value.size() != 3 || !value[1].is_string() ||
      (value[1] != "<" && value[1] != ">")) {
    return absl::InvalidArgumentError(
        "a message is not [microseconds, \"<\" or \">\", bytes]");
  }
  int64_t after = 0;
  int64_t bytes = 0;
  absl::Status status = ReadNumber(value[0], "messages", kMaxMicros, &after);
  status.Update(ReadNumber(value[2], "messages", kMaxMessageBytes, &bytes));
  if (!status.ok()) return status;
  return RecordedMessage{after, static_cast<size_t>(bytes), value[1] == ">"};
}

// Assembles a recording from the lines.
class Assembler {
 public:
  explicit Assembler(const RecordingLimits& limits) : limits_(limits) {}

  // Returns true if the recording is at its limits. The caller then adds
  // nothing more.
  bool full() const { return recording_.goes_on; }
  void SetFull() { recording_.goes_on = true; }

  absl::Status Add(const Json& line) {
    if (!line.is_object()) {
      return absl::InvalidArgumentError("it is no JSON object");
    }
    if (!has_header_) return AddHeader(line);
    if (line.contains("left_out")) return AddLeftOut(line);
    return AddPart(line);
  }

  absl::StatusOr<Recording> Finish() {
    if (!has_header_) return absl::InvalidArgumentError("it is empty");
    for (auto& [id, open] : open_) {
      if (!open.messages.empty()) {
        open.ended_after_us = open.messages.back().after_us;
      }
      recording_.calls.push_back(std::move(open));
      ++recording_.unfinished;
    }
    if (recording_.calls.empty()) {
      return absl::InvalidArgumentError("it has no calls");
    }
    std::stable_sort(recording_.calls.begin(), recording_.calls.end(),
                     [](const RecordedCall& a, const RecordedCall& b) {
                       return a.begun_us < b.begun_us;
                     });
    return CheckLimits();
  }

 private:
  absl::Status AddHeader(const Json& line) {
    int64_t version = 0;
    const absl::Status status =
        ReadField(line, "penstock_recording", 1 << 30, &version);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("it is no recording of Penstock: ", status.message()));
    }
    if (version != kVersion) {
      return absl::InvalidArgumentError(absl::StrCat(
          "it has version ", version, ", and this program reads ", kVersion,
          version > kVersion ? "; take a newer one" : ""));
    }
    has_header_ = true;
    return absl::OkStatus();
  }

  absl::Status AddLeftOut(const Json& line) {
    int64_t calls = 0;
    const absl::Status status = ReadField(line, "left_out", kMaxMicros, &calls);
    recording_.left_out += static_cast<uint64_t>(calls);
    return status;
  }

  absl::Status AddPart(const Json& line) {
    int64_t id = 0;
    absl::Status status = ReadField(line, "call", kMaxMicros, &id);
    if (!status.ok()) return status;
    if (IsTooMuch(line)) {
      SetFull();
      return absl::OkStatus();
    }
    if (line.contains("client")) status = Begin(line, id);
    if (!status.ok()) return status;
    const auto call = open_.find(id);
    if (call == open_.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("call ", id, " has not begun, or ended before"));
    }
    status = AddMessages(line, &call->second);
    if (!status.ok() || !line.contains("end")) return status;
    status = End(line, &call->second);
    if (!status.ok()) return status;
    recording_.calls.push_back(std::move(call->second));
    open_.erase(call);
    return absl::OkStatus();
  }

  bool IsTooMuch(const Json& line) const {
    const auto messages = line.find("messages");
    const size_t count = messages == line.end() ? 0 : messages->size();
    return recording_.messages + count > limits_.messages ||
           (line.contains("client") &&
            recording_.calls.size() + open_.size() == limits_.calls);
  }

  absl::Status Begin(const Json& line, int64_t id) {
    const auto method = line.find("method");
    if (method == line.end() || !method->is_string() ||
        method->get_ref<const std::string&>().size() > kMaxMethodBytes) {
      return absl::InvalidArgumentError("\"method\" is missing or no name");
    }
    RecordedCall call;
    call.method = method->get<std::string>();
    int64_t client = 0;
    absl::Status status = ReadField(line, "client", kMaxMicros, &client);
    status.Update(ReadField(line, "at", kMaxMicros, &call.begun_us));
    if (!status.ok()) return status;
    call.client = clients_.emplace(client, clients_.size()).first->second %
                  Recording::kMaxClients;
    if (!open_.emplace(id, std::move(call)).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("call ", id, " begins twice"));
    }
    return absl::OkStatus();
  }

  absl::Status AddMessages(const Json& line, RecordedCall* call) {
    const auto messages = line.find("messages");
    if (messages == line.end() || !messages->is_array()) {
      return absl::InvalidArgumentError("\"messages\" is missing or no list");
    }
    recording_.messages += messages->size();
    for (const Json& value : *messages) {
      const absl::StatusOr<RecordedMessage> message = ReadMessage(value);
      if (!message.ok()) return message.status();
      if (!call->messages.empty() &&
          message->after_us < call->messages.back().after_us) {
        return absl::InvalidArgumentError("a message is before the last one");
      }
      call->messages.push_back(*message);
      recording_.bytes += message->bytes;
    }
    return absl::OkStatus();
  }

  static absl::Status End(const Json& line, RecordedCall* call) {
    int64_t code = 0;
    absl::Status status =
        ReadField(line, "end", kMaxMicros, &call->ended_after_us);
    status.Update(ReadField(line, "status", kMaxStatus, &code));
    call->status = static_cast<int>(code);
    if (status.ok() && !call->messages.empty() &&
        call->ended_after_us < call->messages.back().after_us) {
      return absl::InvalidArgumentError("a call ends before its last message");
    }
    return status;
  }

  absl::StatusOr<Recording> CheckLimits() {
    recording_.recorded_clients = clients_.size();
    recording_.clients = std::min(clients_.size(), Recording::kMaxClients);
    size_t open = 0;
    for (size_t client = 0; client < recording_.clients; ++client) {
      open += MostOpen(recording_, recording_.CallsOf(client));
    }
    if (open > Recording::kMaxOpenCalls) {
      return absl::InvalidArgumentError(
          absl::StrCat("it has ", open, " calls open at once, and ",
                       Recording::kMaxOpenCalls, " at most can be replayed"));
    }
    return std::move(recording_);
  }

  const RecordingLimits limits_;
  bool has_header_ = false;
  std::map<int64_t, RecordedCall> open_;
  std::map<int64_t, size_t> clients_;
  Recording recording_;
};

struct Closer {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

// Returns why no line follows: zlib's error, or OK at the end of the file.
absl::Status WhyEnded(gzFile_s* file) {
  int code = Z_OK;
  gzerror(file, &code);
  if (code == Z_BUF_ERROR) {
    return absl::InvalidArgumentError(
        "the file is cut off: the process was killed, or the copy is "
        "incomplete; zcat prints what is there");
  }
  if (code == Z_OK || code == Z_STREAM_END) return absl::OkStatus();
  return absl::InvalidArgumentError(
      code == Z_ERRNO ? std::strerror(errno) : "the compression is damaged");
}

absl::Status ReadLines(gzFile_s* file, size_t max_bytes, Assembler* assembler,
                       size_t* lines) {
  std::vector<char> buffer(kMaxLineBytes);
  size_t total = 0;
  while (!assembler->full() &&
         gzgets(file, buffer.data(), kMaxLineBytes) != nullptr) {
    ++*lines;
    const size_t length = std::strlen(buffer.data());
    total += length;
    if (total > max_bytes) {
      assembler->SetFull();
      break;
    }
    if (length == 0 || buffer[length - 1] != '\n') {
      const absl::Status why = WhyEnded(file);
      if (!why.ok()) return why;
      return absl::InvalidArgumentError("it is too long, or does not end");
    }
    const Json line = Json::parse(buffer.data(), buffer.data() + length,
                                  nullptr, /*allow_exceptions=*/false);
    const absl::Status status = assembler->Add(line);
    if (!status.ok()) return status;
  }
  return assembler->full() ? absl::OkStatus() : WhyEnded(file);
}

}  // namespace

bool RecordedCall::is_unary() const {
  return status == 0 && messages.size() == 2 && !messages[0].sent &&
         messages[1].sent;
}

std::vector<size_t> Recording::CallsOf(size_t client) const {
  std::vector<size_t> own;
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].client == client) own.push_back(i);
  }
  return own;
}

size_t MostOpen(const Recording& recording, const std::vector<size_t>& calls) {
  std::priority_queue<int64_t, std::vector<int64_t>, std::greater<>> ends;
  size_t most = 0;
  for (size_t index : calls) {
    const RecordedCall& call = recording.calls[index];
    while (!ends.empty() && ends.top() <= call.begun_us) ends.pop();
    ends.push(call.ended_us());
    most = std::max(most, ends.size());
  }
  return most;
}

absl::StatusOr<Recording> LoadRecording(const std::string& path,
                                        const RecordingLimits& limits) {
  const std::unique_ptr<gzFile_s, Closer> file(gzopen(path.c_str(), "rb"));
  if (file == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", std::strerror(errno)));
  }
  Assembler assembler(limits);
  size_t lines = 0;
  const absl::Status status =
      ReadLines(file.get(), limits.file_bytes, &assembler, &lines);
  if (!status.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": line ", lines, ": ", status.message()));
  }
  absl::StatusOr<Recording> recording = assembler.Finish();
  if (recording.ok()) return recording;
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": ", recording.status().message()));
}

}  // namespace bench
}  // namespace penstock
