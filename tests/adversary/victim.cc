#include "tests/adversary/victim.h"

#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "penstock/penstock.h"
#include "tests/e2e/certificates.h"
#include "tests/process/usage.h"

namespace penstock::adversary {
namespace {

constexpr char kProgram[] = "tests/adversary/victim";

// The time that the victim may take for a byte. About ten times as long as a
// build without sanitizers needs on an idle machine.
constexpr double kSecondsPerByte = 50e-9;
constexpr double kSecondsPerFrame = 5e-6;
constexpr double kSecondsPerConnection = 5e-3;
constexpr double kSecondsPerCall = 1e-3;
// Limits the log bytes per connection: one line for the beginning, and one line
// for an abnormal end.
constexpr uint64_t kLogPerConnection = 500;
// The number of descriptors that short-lived connections may take.
constexpr int kDescriptorSlack = 64;
// The additional time that is allowed, because the machine may be busy.
constexpr std::chrono::seconds kLateness(5);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kIsInstrumented = true;
#else
constexpr bool kIsInstrumented = false;
#endif

double Mebibytes(uint64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

void MakeIdentities(bool is_server, Identity* victim, Identity* others) {
  const auto& made = e2e::TestCertificates();
  ASSERT_TRUE(made.has_value()) << "no openssl command?";
  Identity server = {made->authority.certificate, made->server.key,
                     made->server.certificate};
  Identity client = {made->authority.certificate, made->client.key,
                     made->client.certificate};
  *victim = is_server ? server : client;
  *others = is_server ? client : server;
}

bool IsText(const std::string& log) {
  for (char c : log) {
    if (c == '\n' || c == '\t') continue;
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) return false;
  }
  return true;
}

}  // namespace

Victim::Victim(const VictimOptions& options) : options_(options) {
  if (options_.has_tls) MakeIdentities(is_server(), &identity_, &others_);
  Start();
}

void Victim::Restart() {
  bystander_.reset();
  process_.reset();
  Start();
}

void Victim::Start() {
  if (is_server()) {
    StartServer();
  } else {
    StartClient();
  }
  // Makes the first connection of each kind, so that all one-time allocations
  // happen before the measurement.
  if (process_ == nullptr) return;
  CheckBystander();
  process::ForgetPeak(process_->pid());
  memory_ = process::ResidentBytes(process_->pid());
  cpu_seconds_ = process::CpuSeconds(process_->pid());
  log_ = log_file_.size();
  descriptors_ = process::Descriptors(process_->pid());
  calls_before_ = calls_;
  connections_before_ = connections_;
}

Victim::~Victim() {
  if (bystander_ != nullptr) bystander_->Stop();
  process_.reset();
  if (honest_ != nullptr) honest_->Shutdown(std::chrono::system_clock::now());
}

void Victim::StartServer() {
  process_ = process::Child::Start(
      {kProgram, "server", absl::StrCat(options_.max_streams),
       absl::StrCat(options_.max_receive)},
      Environment(), log_file_.fd());
  ASSERT_NE(process_, nullptr);
  const absl::optional<std::string> port = process_->Find("port ");
  ASSERT_TRUE(port.has_value() && absl::SimpleAtoi(*port, &port_));
  bystander_ = std::make_unique<Bystander>(port_, options_.has_tcp, others_);
}

void Victim::StartHonest() {
  grpc::ServerBuilder builder;
  Enable(&builder);
  builder.AddListeningPort("127.0.0.1:0", ServerCredentials(others_), &port_);
  builder.RegisterCallbackGenericService(&service_);
  honest_ = builder.BuildAndStart();
}

void Victim::StartClient() {
  if (honest_ == nullptr) StartHonest();
  ASSERT_NE(honest_, nullptr);
  process_ = process::Child::Start(
      {kProgram, "client", absl::StrCat(port_), absl::StrCat(listener_.port()),
       NameOf(options_.kind), absl::StrCat(options_.calls)},
      Environment(), log_file_.fd());
  ASSERT_NE(process_, nullptr);
}

std::vector<std::string> Victim::Environment() const {
  std::vector<std::string> environment = ToEnvironment(identity_);
  environment.insert(environment.end(), options_.environment.begin(),
                     options_.environment.end());
  return environment;
}

std::unique_ptr<Peer> Victim::Connect() {
  std::unique_ptr<Peer> peer = ConnectInClear();
  if (peer == nullptr || !peer->Secure(others_)) return nullptr;
  peer->version = options_.version;
  return peer;
}

std::unique_ptr<Peer> Victim::ConnectInClear() {
  if (is_server()) return Peer::Connect(port_, &traffic_);
  std::unique_ptr<Peer> peer;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (peer == nullptr && process_->IsAlive() &&
         std::chrono::steady_clock::now() < until) {
    peer = listener_.Accept(std::chrono::milliseconds(100), &traffic_);
  }
  return peer;
}

std::unique_ptr<Peer> Victim::NewConnection() { return OrFail(Connect()); }

std::unique_ptr<Peer> Victim::NewConnectionInClear() {
  return OrFail(ConnectInClear());
}

// Replaces null by a closed peer, and fails the test.
std::unique_ptr<Peer> Victim::OrFail(std::unique_ptr<Peer> peer) {
  if (peer != nullptr) return peer;
  ADD_FAILURE() << "no connection: the victim is " << process_->Fate();
  return std::make_unique<Peer>(Peer::Side::kClient, -1, &traffic_);
}

std::unique_ptr<Peer> Victim::TryUntil(const Step& step) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  do {
    std::unique_ptr<Peer> peer = Connect();
    if (peer == nullptr || step(peer.get())) return peer;
    if (is_server() || !peer->AwaitEnd()) return nullptr;
  } while (std::chrono::steady_clock::now() < until);
  return nullptr;
}

std::unique_ptr<Peer> Victim::NewNegotiation() {
  return OrFail(TryUntil([](Peer* peer) { return peer->Negotiate(); }));
}

std::unique_ptr<Peer> Victim::TrySession(Hello hello) {
  if (!is_server() && hello.token.empty()) hello.token = std::string(16, 't');
  return TryUntil(
      [&hello](Peer* peer) { return peer->Negotiate() && peer->Greet(hello); });
}

std::unique_ptr<Peer> Victim::NewSession(Hello hello) {
  return OrFail(TrySession(std::move(hello)));
}

void Victim::CheckBystander() {
  std::string failure;
  if (is_server()) {
    bystander_->AwaitCalls();
    calls_ = bystander_->calls();
    connections_ = bystander_->connections();
    failure = bystander_->failure();
  } else {
    process_->Tell("check\n");
    for (absl::optional<std::string> line; line = process_->Find("");) {
      if (absl::StartsWith(*line, "checked ")) {
        std::istringstream fields(line->substr(8));
        fields >> calls_ >> connections_;
        std::getline(fields >> std::ws, failure);
        break;
      }
      if (absl::StartsWith(*line, "ended ")) {
        AddOutcome(line->substr(6));
      } else {
        paths_.push_back(*line);
      }
    }
  }
  EXPECT_EQ(failure, "") << "a bystander's call failed; the victim is "
                         << process_->Fate();
}

// Takes the outcome of a call from the victim's output. gRPC ends each call at
// its deadline, whatever the server does.
void Victim::AddOutcome(const std::string& line) {
  Outcome outcome;
  std::istringstream fields(line);
  fields >> outcome.code >> outcome.seconds;
  std::getline(fields >> std::ws, outcome.message);
  EXPECT_LE(outcome.seconds, kCallDeadline.count() + kLateness.count())
      << "a call did not end: " << outcome.code << " " << outcome.message;
  outcomes_.push_back(std::move(outcome));
}

absl::optional<Outcome> Victim::AwaitOutcome() {
  const auto until =
      std::chrono::steady_clock::now() + kCallDeadline + kLateness;
  while (outcomes_.empty()) {
    if (std::chrono::steady_clock::now() > until) return absl::nullopt;
    CheckBystander();
    if (!process_->IsAlive()) return absl::nullopt;
  }
  Outcome outcome = std::move(outcomes_.front());
  outcomes_.pop_front();
  return outcome;
}

void Victim::Examine(const Limits& limits) {
  ASSERT_NE(process_, nullptr);
  EXPECT_TRUE(process_->IsAlive()) << process_->Fate() << "\n" << Log();
  const int calls = calls_;
  CheckBystander();
  EXPECT_GT(calls_, calls) << "no bystander's call after the attack";
  CheckLog(limits);
  if (!process_->IsAlive()) return;
  CheckMemory(limits);
  CheckCpu(limits);
  CheckDescriptors();
}

void Victim::CheckMemory(const Limits& limits) {
  const uint64_t peak = std::max(memory_, process::PeakBytes(process_->pid()));
  const double grown = Mebibytes(peak - memory_);
  ::testing::Test::RecordProperty("grown_mib", static_cast<int>(grown));
  // Skips the check with a sanitizer, which uses many times the memory of the
  // program.
  if (kIsInstrumented) return;
  EXPECT_LE(grown, Mebibytes(limits.memory))
      << "MiB of memory, for " << Mebibytes(traffic_.bytes) << " MiB sent";
}

void Victim::CheckCpu(const Limits& limits) {
  const double used = process::CpuSeconds(process_->pid()) - cpu_seconds_;
  const double allowed =
      limits.cpu_seconds +
      kSecondsPerByte * static_cast<double>(traffic_.bytes) +
      kSecondsPerFrame * static_cast<double>(traffic_.frames) +
      kSecondsPerConnection * static_cast<double>(Connections()) +
      kSecondsPerCall *
          static_cast<double>(traffic_.headers + calls_ - calls_before_);
  ::testing::Test::RecordProperty("cpu_ms", static_cast<int>(used * 1000));
  if (kIsInstrumented) return;
  EXPECT_LE(used, allowed) << "seconds of CPU, for " << traffic_.frames
                           << " frames of " << traffic_.bytes << " bytes";
}

void Victim::CheckLog(const Limits& limits) {
  const std::string log = Log();
  EXPECT_LE(log.size(), limits.log + kLogPerConnection * Connections())
      << log.substr(0, 2000);
  EXPECT_TRUE(IsText(log)) << "control characters in the log";
}

// Checks that the victim has no more descriptors than before. A closed
// connection frees its descriptor a moment later.
void Victim::CheckDescriptors() {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  while (process::Descriptors(process_->pid()) >
             descriptors_ + kDescriptorSlack &&
         std::chrono::steady_clock::now() < until) {
    AwaitCalls();
  }
  EXPECT_LE(process::Descriptors(process_->pid()),
            descriptors_ + kDescriptorSlack);
}

uint64_t Victim::Connections() const {
  return traffic_.connections + connections_ - connections_before_;
}

}  // namespace penstock::adversary
