// Tests a whole cluster, started in the way of TensorFlow's launchers: each
// process reads its role from TF_CONFIG.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "examples/common/process.h"

namespace penstock::digits {
namespace {

// A listening socket on a free port of this host.
class Listener {
 public:
  Listener() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, generic, size), 0);
    EXPECT_EQ(listen(socket_, 1), 0);
    EXPECT_EQ(getsockname(socket_, generic, &size), 0);
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { close(socket_); }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  const int socket_;
  int port_ = 0;
};

std::string TfConfig(const std::string& server, const std::string& task) {
  // Names unused ports for workers and evaluators. These do not listen: the
  // servers only count their addresses.
  return absl::StrCat(R"(TF_CONFIG={"cluster": {"ps": [")", server,
                      R"("], "chief": ["127.0.0.1:1"], )",
                      R"("worker": ["127.0.0.1:2"], )",
                      R"("evaluator": ["127.0.0.1:3"]}, "task": {"type": ")",
                      task, R"(", "index": 0}})");
}

absl::StatusOr<examples::Process> StartServer(const std::string& config) {
  auto program = examples::FindProgram("ps_server", "../../ps/ps_server");
  if (!program.ok()) return program.status();
  return examples::Process::Start(*program, {"--quiet"}, {config});
}

absl::StatusOr<examples::Process> StartWorker(
    const std::string& config, const std::vector<std::string>& more = {}) {
  auto program = examples::FindProgram("digits_worker",
                                       "../../examples/digits/digits_worker");
  if (!program.ok()) return program.status();
  std::vector<std::string> flags = {"--steps=60", "--hidden=64"};
  flags.insert(flags.end(), more.begin(), more.end());
  return examples::Process::Start(*program, flags, {config});
}

// Returns the next line that starts with `prefix`, or nothing at the end.
absl::optional<std::string> FindLine(examples::Process* process,
                                     absl::string_view prefix) {
  while (true) {
    while (absl::optional<std::string> line = process->NextLine()) {
      if (absl::StartsWith(*line, prefix)) return line;
    }
    if (!process->ReadSome()) return absl::nullopt;
  }
}

TEST(TfConfigTest, ServerTakesItsOwnAddress) {
  Listener other;
  // Starts a server whose address is in use. The server notices this when it
  // binds the address.
  auto server = StartServer(TfConfig(other.address(), "ps"));
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(FindLine(&*server, "port"), absl::nullopt);
  EXPECT_FALSE(server->Wait().ok());
}

TEST(TfConfigTest, ChiefWorkerServerAndEvaluatorTrainToTheEnd) {
  constexpr int kAttempts = 5;
  absl::optional<examples::Process> server;
  std::string address;
  for (int i = 0; i < kAttempts && !server.has_value(); ++i) {
    // Chooses a free port, because TF_CONFIG must name the port in advance.
    // Tries again if another process takes the port meanwhile.
    address = Listener().address();
    auto started = StartServer(TfConfig(address, "ps"));
    ASSERT_TRUE(started.ok()) << started.status();
    auto line = FindLine(&*started, "port ");
    if (!line.has_value()) continue;
    EXPECT_TRUE(absl::EndsWith(address, ":" + line->substr(5))) << *line;
    server = *std::move(started);
  }
  ASSERT_TRUE(server.has_value());
  auto evaluator = StartWorker(TfConfig(address, "evaluator"), {"--every=20"});
  auto chief = StartWorker(TfConfig(address, "chief"));
  auto worker = StartWorker(TfConfig(address, "worker"));
  ASSERT_TRUE(evaluator.ok() && chief.ok() && worker.ok());
  auto result = FindLine(&*chief, "result ");
  ASSERT_TRUE(result.has_value());
  EXPECT_TRUE(chief->Wait().ok());
  EXPECT_TRUE(FindLine(&*worker, "path ").has_value());
  EXPECT_EQ(FindLine(&*worker, "result "), absl::nullopt);  // not the chief
  EXPECT_TRUE(worker->Wait().ok());
  std::string last;
  while (auto line = FindLine(&*evaluator, "evaluated ")) last = *line;
  EXPECT_TRUE(evaluator->Wait().ok());
  // Compares the evaluator's result with the chief's: both have the same
  // variables and digits.
  std::vector<std::string> fields = absl::StrSplit(*result, ' ');
  EXPECT_EQ(last, absl::StrCat("evaluated 60 ", fields[1]));
  server->Terminate();
  EXPECT_TRUE(server->Wait().ok());
}

}  // namespace
}  // namespace penstock::digits
