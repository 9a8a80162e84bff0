#include "transport/base/status_util.h"

#include <cerrno>

#include "absl/status/status.h"
#include "gtest/gtest.h"

namespace penstock {
namespace base {
namespace {

TEST(ErrnoStatus, NamesOperationAndCause) {
  EXPECT_EQ(ErrnoStatus(ENOENT, "open /x").message(),
            "open /x: No such file or directory");
  EXPECT_EQ(ErrnoStatus(99999, "open /x").message(),
            "open /x: Unknown error 99999");
}

TEST(ErrnoStatus, EveryNumberHasItsCode) {
  const struct {
    int number;
    absl::StatusCode code;
  } kTable[] = {
      {ENOMEM, absl::StatusCode::kResourceExhausted},
      {ENOSPC, absl::StatusCode::kResourceExhausted},
      {EMFILE, absl::StatusCode::kResourceExhausted},
      {ENFILE, absl::StatusCode::kResourceExhausted},
      {ENOBUFS, absl::StatusCode::kResourceExhausted},
      {EPERM, absl::StatusCode::kPermissionDenied},
      {EACCES, absl::StatusCode::kPermissionDenied},
      {ECONNREFUSED, absl::StatusCode::kUnavailable},
      {ECONNRESET, absl::StatusCode::kUnavailable},
      {EPIPE, absl::StatusCode::kUnavailable},
      {ENOENT, absl::StatusCode::kUnavailable},
      {ENOTCONN, absl::StatusCode::kUnavailable},
      {ETIMEDOUT, absl::StatusCode::kDeadlineExceeded},
      {EINVAL, absl::StatusCode::kInternal},
      {EBADF, absl::StatusCode::kInternal},
      {99999, absl::StatusCode::kInternal},
      {-1, absl::StatusCode::kInternal},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(ErrnoStatus(row.number, "x").code(), row.code) << row.number;
  }
}

TEST(ErrnoStatus, IsNeverOk) {
  for (int number = 0; number < 200; ++number) {
    EXPECT_FALSE(ErrnoStatus(number, "x").ok()) << number;
  }
}

}  // namespace
}  // namespace base
}  // namespace penstock
