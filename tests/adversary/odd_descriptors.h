// Descriptors that a hostile peer may pass in place of shared memory.

#ifndef PENSTOCK_TESTS_ADVERSARY_ODD_DESCRIPTORS_H_
#define PENSTOCK_TESTS_ADVERSARY_ODD_DESCRIPTORS_H_

#include <vector>

#include "tests/adversary/shm_peer.h"

namespace penstock::adversary {

// Descriptors of every kind. Some are memory with a valid beginning of a
// control page, but are unsealed or too small. The destructor closes all
// descriptors.
class OddDescriptors {
 public:
  OddDescriptors();
  ~OddDescriptors();
  OddDescriptors(const OddDescriptors&) = delete;
  OddDescriptors& operator=(const OddDescriptors&) = delete;

  const std::vector<int>& fds() const { return fds_; }

 private:
  SharedMemory unsealed_;
  SharedMemory small_;
  std::vector<int> own_;
  std::vector<int> fds_;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_ODD_DESCRIPTORS_H_
