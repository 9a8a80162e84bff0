#include "tests/ps/chaos/record.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::ps {

Recorder::Recorder(const std::string& path)
    : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                 0600)) {}

Recorder::~Recorder() { close(file_); }

// Appends a line with one write, and ends the process if the write fails. A
// push that is not recorded must not happen.
void Recorder::Write(const std::string& line) {
  const ssize_t written = write(file_, line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) std::abort();
}

void Recorder::Begin(const RecordedPush& push) {
  std::string line =
      absl::StrCat("push ", push.number, " ", push.run, " ", push.rank, " ",
                   push.step, " ", push.ids.size());
  for (size_t policy = 0; policy < push.ids.size(); ++policy) {
    absl::StrAppend(&line, " ", push.owners[policy], " ",
                    push.ids[policy].size(), " ",
                    absl::StrJoin(push.ids[policy], " "));
  }
  Write(line + "\n");
}

void Recorder::Acknowledge(uint64_t push) {
  Write(absl::StrCat("ack ", push, "\n"));
}

void Recorder::Note(const std::string& text) {
  Write(absl::StrCat("note ", text, "\n"));
}

namespace {

RecordedPush PushIn(std::istream* line) {
  RecordedPush push;
  size_t policies = 0;
  *line >> push.number >> push.run >> push.rank >> push.step >> policies;
  push.owners.resize(policies);
  push.ids.resize(policies);
  for (size_t policy = 0; policy < policies; ++policy) {
    size_t servers = 0;
    *line >> push.owners[policy] >> servers;
    push.ids[policy].resize(servers);
    for (uint64_t& id : push.ids[policy]) *line >> id;
  }
  return push;
}

}  // namespace

void RecordReader::Read() {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path_, error);
  if (error) return;  // not yet made
  std::ifstream file(path_);
  file.seekg(static_cast<std::streamoff>(offset_));
  std::string text;
  while (offset_ < size && std::getline(file, text)) {
    if (file.eof()) break;  // still being written
    offset_ += text.size() + 1;
    Take(text);
  }
}

void RecordReader::Take(const std::string& text) {
  std::istringstream line(text);
  std::string kind;
  line >> kind;
  if (kind == "push") pushes_.push_back(PushIn(&line));
  if (kind == "note") last_note_ = text;
  uint64_t number = 0;
  if (kind == "ack" && line >> number) Acknowledge(number);
}

void RecordReader::Acknowledge(uint64_t number) {
  const auto push = std::lower_bound(
      pushes_.begin(), pushes_.end(), number,
      [](const RecordedPush& each, uint64_t at) { return each.number < at; });
  if (push == pushes_.end() || push->number != number) return;
  push->is_acknowledged = true;
  ++acknowledged_;
  const auto at = static_cast<size_t>(push - pushes_.begin());
  const auto first = newest_.insert({push->run, at});
  if (first.second) return;
  // Marks the run's previous push as settled. Earlier pushes are
  // already settled.
  pushes_[first.first->second].is_settled = true;
  first.first->second = at;
}

}  // namespace penstock::ps
