#ifndef TESTS_VM_VM_TEST_H_
#define TESTS_VM_VM_TEST_H_

#include <gtest/gtest.h>

#include <cstdlib>

namespace penstock {

// Base of tests that run in tools/rdma-vm. Elsewhere they skip themselves; in
// there a device that is missing has to be a failure, so they do not ask for
// the device. A SetUp() on top of it calls this one, and returns where
// IsSkipped().
class VmTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("RDMA_VM") == nullptr) {
      GTEST_SKIP() << "wants the devices of tools/rdma-vm";
    }
  }
};

}  // namespace penstock

#endif  // TESTS_VM_VM_TEST_H_
