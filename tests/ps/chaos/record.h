// The file in which a worker's process records its pushes.

#ifndef PENSTOCK_TESTS_PS_CHAOS_RECORD_H_
#define PENSTOCK_TESTS_PS_CHAOS_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/ps/training/training.h"

namespace penstock::ps {

struct RecordedPush {
  uint64_t number = 0;
  uint64_t run = 0;
  uint32_t rank = 0;
  uint64_t step = 0;
  PushIds ids;
  // The server that holds the dense table of each policy.
  std::vector<size_t> owners;
  bool is_acknowledged = false;  // all servers have counted it
  // True if the same process has a later acknowledged push in the same run. In
  // that case this push has been applied.
  bool is_settled = false;
};

// Appends lines to a file. A written line survives the death of the process.
class Recorder {
 public:
  explicit Recorder(const std::string& path);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Record a push. Call Begin() before the push, and Acknowledge() once all
  // servers have counted it.
  void Begin(const RecordedPush& push);
  void Acknowledge(uint64_t push);
  // Records a text for people: the reason why the process ends, or the step at
  // which training continues.
  void Note(const std::string& text);

 private:
  void Write(const std::string& line);

  const int file_;
};

// Reads the record of a process, while the process may still write it. Reads
// each line once, because a worker that never waits records thousands of lines
// a second. Not thread-safe.
class RecordReader {
 public:
  explicit RecordReader(std::string path) : path_(std::move(path)) {}

  // Reads the complete lines that the file has at the time of the call. Returns
  // even if the file grows faster than it is read.
  void Read();

  // The following return what Read() has found so far.
  // The pushes, in the order of their numbers.
  const std::vector<RecordedPush>& pushes() const { return pushes_; }
  size_t acknowledged() const { return acknowledged_; }
  const std::string& last_note() const { return last_note_; }

 private:
  void Take(const std::string& text);
  void Acknowledge(uint64_t number);

  const std::string path_;
  uint64_t offset_ = 0;  // of the first byte that is not yet read
  std::vector<RecordedPush> pushes_;
  size_t acknowledged_ = 0;
  // The index in pushes_ of each run's last acknowledged push.
  std::map<uint64_t, size_t> newest_;
  std::string last_note_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CHAOS_RECORD_H_
