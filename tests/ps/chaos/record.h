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
  // By policy: the server of the dense table.
  std::vector<size_t> owners;
  bool is_acknowledged = false;  // all servers have counted it
  // True if the same process has a later acknowledged push in the same run.
  // This push is then applied, not only taken.
  bool is_settled = false;
};

// Appends lines to a file. A line that was written survives the process.
class Recorder {
 public:
  explicit Recorder(const std::string& path);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Call before the push, and once all servers have counted the push.
  void Begin(const RecordedPush& push);
  void Acknowledge(uint64_t push);
  // For people: why the process ends, or where it goes on.
  void Note(const std::string& text);

 private:
  void Write(const std::string& line);

  const int file_;
};

struct Recorded {
  std::vector<RecordedPush> pushes;  // of one process, in order
  std::string last_note;
};

// Reads what a process has recorded so far.
Recorded ReadRecord(const std::string& path);

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_CHAOS_RECORD_H_
