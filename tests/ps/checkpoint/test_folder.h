// A folder for the checkpoints of a test.

#ifndef PENSTOCK_TESTS_PS_CHECKPOINT_TEST_FOLDER_H_
#define PENSTOCK_TESTS_PS_CHECKPOINT_TEST_FOLDER_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace penstock::ps::checkpoint {

// A folder in memory, if the system has such a file system. On a disk, a
// checkpoint waits for the disk several times, and a busy disk takes seconds.
class TestFolder {
 public:
  TestFolder() {
    const bool has_memory = access("/dev/shm", W_OK) == 0;
    name_ = (has_memory ? "/dev/shm" : testing::TempDir()) +
            std::string("/checkpoints-XXXXXX");
    EXPECT_NE(mkdtemp(name_.data()), nullptr);
  }
  ~TestFolder() { std::filesystem::remove_all(name_); }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_TESTS_PS_CHECKPOINT_TEST_FOLDER_H_
