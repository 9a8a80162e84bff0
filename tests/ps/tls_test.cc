// Tests which files make valid credentials, and which do not.

#include "ps/tls.h"

#include <gtest/gtest.h>

namespace penstock::ps {
namespace {

TEST(TlsTest, WithoutFilesThereIsNoTls) {
  EXPECT_TRUE(ServerSecurity({}).ok());
  EXPECT_TRUE(ClientSecurity({}).ok());
  EXPECT_FALSE(TlsFiles().given());
}

// Tests a server with only some of the files. An operator who names one file
// wants TLS, so the server must not run without TLS.
TEST(TlsTest, SomeOfTheFilesAreRefused) {
  for (const TlsFiles& some :
       {TlsFiles{"ca", "", ""}, TlsFiles{"", "cert", ""},
        TlsFiles{"", "", "key"}, TlsFiles{"ca", "", "key"}}) {
    EXPECT_TRUE(some.given());
    EXPECT_EQ(some.Check().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ServerSecurity(some).status().code(),
              absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(ClientSecurity(some).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(TlsTest, AFileThatCannotBeReadIsNamed) {
  const TlsFiles files = {"/nonexistent/ca", "/nonexistent/cert",
                          "/nonexistent/key"};
  const absl::Status status = ClientSecurity(files).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "cannot read /nonexistent/ca, or it is empty");
}

}  // namespace
}  // namespace penstock::ps
