// Tests a server that reads its secrets again at SIGHUP. The secrets change
// during a training.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "ps/access/send_secret.h"
#include "ps/client/training_connection.h"
#include "tests/process/child.h"

namespace penstock::ps {
namespace {

using process::Child;

const std::string kOld(40, 'a');
const std::string kNew(40, 'b');

class ReloadTest : public testing::Test {
 protected:
  void SetUp() override {
    Write(kOld);
    server_ = Child::Start({"ps/ps_server", "--listen=127.0.0.1:0",
                            "--workers=1", absl::StrCat("--secret=", path_)});
    ASSERT_NE(server_, nullptr);
    const auto port = server_->Find("port ");
    ASSERT_TRUE(port.has_value());
    address_ = absl::StrCat("127.0.0.1:", *port);
  }

  void Write(const std::string& text) const {
    std::ofstream(path_) << text << "\n";
    ASSERT_EQ(chmod(path_.c_str(), 0600), 0);
  }

  void Reload() const { ASSERT_EQ(kill(server_->pid(), SIGHUP), 0); }

  bool Admits(const std::string& secret) const {
    const auto channel =
        grpc::experimental::CreateCustomChannelWithInterceptors(
            address_, grpc::InsecureChannelCredentials(), {},
            SendSecret(secret));
    return Describe(channel, absl::Seconds(30)).ok();
  }

  const std::string path_ = testing::TempDir() + "/secret";
  std::unique_ptr<Child> server_;
  std::string address_;
};

TEST_F(ReloadTest, AnotherSecretTakesThePlaceOfTheFirst) {
  EXPECT_TRUE(Admits(kOld));
  EXPECT_FALSE(Admits(kNew));
  Write(kNew);
  Reload();
  while (!Admits(kNew)) {  // the signal may still be on its way
  }
  EXPECT_FALSE(Admits(kOld));
}

TEST_F(ReloadTest, AFileThatIsWrongChangesNothing) {
  Write("short");
  Reload();
  absl::optional<std::string> line;
  do {
    line = server_->Find("");
    ASSERT_TRUE(line.has_value());
  } while (line->find("access: not reloaded") == std::string::npos);
  EXPECT_THAT(*line, testing::HasSubstr("the secret has 5 characters"));
  EXPECT_TRUE(Admits(kOld));
}

}  // namespace
}  // namespace penstock::ps
