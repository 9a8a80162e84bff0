// The file in which a worker's process records its pushes.

#ifndef PENSTOCK_TESTS_PS_CHAOS_RECORD_H_
#define PENSTOCK_TESTS_PS_CHAOS_RECORD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/ps/training/training.h"

namespace penstock::ps {

struct RecordedPush {
  uint64_t number = 0;
  uint64_t run = 0;
  uint32_t rank = 0;
  uint64_t step = 0;
  PushIds ids;
  // For each policy, the server that has the policy's dense table.
  std::vector<size_t> owners;
  bool is_acknowledged = false;  // all servers have counted it
  // True if the same process has a later acknowledged push in the same run.
  // This push is then applied, not only taken.
  bool is_settled = false;
};

// Appends lines to a file. A line that was written outlives the process.
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
  // Records a text for people: why the process ends, or from where it
  // continues.
  void Note(const std::string& text);

 private:
  void Write(const std::string& line);

  const int file_;
};

struct Recorded {
  std::vector<RecordedPush> pushes;  // of one process, in order
  std::string last_note;
};

// Returns everything that a process has recorded until now.
Recorded ReadRecord(const std::string& path);

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CHAOS_RECORD_H_
