// Tests the pool of a program that allocates before it connects. The pool must
// use the kind of pages that the setting requests. Each process reads the
// setting once, so this test needs a separate program.

#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/stack_test.h"
#include "tests/transport/fabric/shm/kernel_pages.h"

namespace penstock::e2e {
namespace {

class AllocatorPagesTest : public ServiceTest {};

// Tests the pages, whether or not the machine has reserved huge pages.
TEST_P(AllocatorPagesTest, PoolHasThePagesOfTheSetting) {
  fabric::shm::KernelPagesLock lock;
  ASSERT_EQ(setenv("PENSTOCK_SHM_HUGE_PAGES", "reserved", 1), 0);
  const Allocator::Buffer buffer = Allocator::Allocate(1 << 20);
  ASSERT_TRUE(buffer.is_pooled());
  ASSERT_TRUE(MakeEmptyCall(stub_.get()).ok());
  const auto reports = DescribePaths(*channel());
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_THAT(reports[0].detail,
              testing::HasSubstr(" of 16 MiB in reserved huge pages"));
}

INSTANTIATE_TEST_SUITE_P(Over, AllocatorPagesTest, testing::Values(Path::kShm),
                         PathName());

}  // namespace
}  // namespace penstock::e2e
