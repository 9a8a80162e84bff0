#include "tests/ps/chaos/record.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

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

void Acknowledge(uint64_t number, std::vector<RecordedPush>* pushes) {
  const auto acknowledged =
      std::find_if(pushes->begin(), pushes->end(),
                   [&](const auto& push) { return push.number == number; });
  if (acknowledged == pushes->end()) return;
  acknowledged->is_acknowledged = true;
  for (auto push = pushes->begin(); push != acknowledged; ++push) {
    push->is_settled |= push->is_acknowledged && push->run == acknowledged->run;
  }
}

}  // namespace

Recorded ReadRecord(const std::string& path) {
  Recorded recorded;
  std::ifstream file(path);
  std::string text;
  while (std::getline(file, text)) {
    if (file.eof()) break;  // still being written
    std::istringstream line(text);
    std::string kind;
    line >> kind;
    if (kind == "push") recorded.pushes.push_back(PushIn(&line));
    if (kind == "note") recorded.last_note = text;
    uint64_t number = 0;
    if (kind == "ack" && line >> number) {
      Acknowledge(number, &recorded.pushes);
    }
  }
  return recorded;
}

}  // namespace penstock::ps
