// Tests, on a machine without a device, that the libraries open. If one is
// missing, the error must name it.

#include "transport/fabric/verbs/library.h"

#include <dlfcn.h>

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

bool IsInstalled() {
  return dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr &&
         dlopen("librdmacm.so.1", RTLD_NOW | RTLD_LOCAL) != nullptr;
}

TEST(LibraryTest, OpensWhereInstalled) {
  if (!IsInstalled()) GTEST_SKIP() << "no libibverbs1 or librdmacm1 here";
  EXPECT_TRUE(OpenLibrary().ok()) << OpenLibrary().status();
}

TEST(LibraryTest, MissingOneIsNamedWithItsPackage) {
  if (IsInstalled()) GTEST_SKIP() << "the libraries are here";
  EXPECT_EQ(OpenLibrary().status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(OpenLibrary().status().message(), "package"));
}

TEST(LibraryTest, SecondOpeningGivesTheSame) {
  const absl::StatusOr<Api*> first = OpenLibrary();
  const absl::StatusOr<Api*> second = OpenLibrary();
  ASSERT_EQ(first.status(), second.status());
  if (!first.ok()) return;
  EXPECT_EQ(*first, *second);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
