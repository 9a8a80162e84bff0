#include "tests/transport/session/session_test_util.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace session {
namespace {

// Limits the rounds, to end a test in which two ends answer each other forever.
// Far more than any test needs.
constexpr int kMaxRounds = 1000 * 1000;

std::string ToText(const absl::Status& status) {
  return absl::StrCat(absl::StatusCodeToString(status.code()), ": ",
                      status.message());
}

wire::FabricOffer Shm(const std::string& data) {
  wire::FabricOffer offer;
  offer.fabric = "shm";
  offer.usable = true;
  offer.data = data;
  return offer;
}

}  // namespace

const char kToken[] = "0123456789abcdef";

std::string Letters(size_t size, uint32_t seed) {
  std::string text(size, '\0');
  uint32_t state = seed * 2654435761u + 12345;
  for (char& letter : text) {
    state = state * 1664525 + 1013904223;
    letter = 'a' + (state >> 24) % 26;
  }
  return text;
}

memory::Payload ToPayload(absl::string_view text) {
  memory::Payload payload;
  const size_t middle = text.size() / 3;
  for (absl::string_view part : {text.substr(0, middle), text.substr(middle)}) {
    memory::Block block = memory::AllocateBlock(part.size()).value();
    std::copy(part.begin(), part.end(), block.data.get());
    payload.Append(block.AsBytes());
  }
  return payload;
}

std::string ToString(const memory::Payload& payload) {
  std::string text(payload.size(), '?');
  payload.CopyTo(reinterpret_cast<uint8_t*>(&text[0]));
  return text;
}

memory::Payload Owned(const memory::Payload& payload) {
  memory::Payload owned;
  for (const memory::Bytes& piece : payload.pieces()) {
    owned.Append(memory::Own(piece).value());
  }
  return owned;
}

wire::AnnouncedRegion Announced(uint32_t path,
                                const fabric::RemoteRegion& region) {
  wire::AnnouncedRegion announced;
  announced.path = path;
  for (const fabric::RemotePart& part : region) {
    announced.parts.push_back({part.key, part.offset, part.length});
  }
  return announced;
}

std::string Brief(absl::string_view text) {
  if (text.size() <= 40) return std::string(text);
  return absl::StrCat(text.size(), " bytes, hash ",
                      std::hash<std::string>()(std::string(text)));
}

std::string MessageLine(absl::string_view text) {
  return absl::StrCat("message ", Brief(text));
}

Config ClientConfig() {
  Config config;
  config.is_client = true;
  config.offers = {Shm("client's")};
  return config;
}

Config ServerConfig() {
  Config config;
  config.offers = {Shm("server's")};
  config.token = kToken;
  return config;
}

LinkOptions LifelineOptions() {
  LinkOptions options;
  options.is_lifeline = true;
  return options;
}

void StreamRecorder::OnHeaders(absl::string_view metadata) {
  Add("headers " + Brief(std::string(metadata)));
}

void StreamRecorder::OnMessage(const memory::Payload& message,
                               bool compressed) {
  std::string line = MessageLine(ToString(message));
  if (keeps) kept.push_back(Owned(message));
  Add(compressed ? "compressed " + line : line);
}

void StreamRecorder::OnMessageTooLarge(uint64_t bytes) {
  Add(absl::StrCat("too large ", bytes));
}

void StreamRecorder::OnHalfClose() { Add("half close"); }

void StreamRecorder::OnTrailers(absl::string_view metadata) {
  Add("trailers " + Brief(std::string(metadata)));
}

void StreamRecorder::OnReset(const absl::Status& status, bool from_peer) {
  Add(absl::StrCat("reset ", ToText(status), from_peer ? ", by the peer" : ""));
}

void StreamRecorder::OnSendAccepted() { Add("accepted"); }

void StreamRecorder::Add(std::string line) {
  lines_.push_back(std::move(line));
  if (on_event) on_event();
}

Lines StreamRecorder::Take() { return std::exchange(lines_, Lines()); }

Peer::Peer(const Config& config, std::unique_ptr<fabric::Endpoint> lifeline)
    : session_(
          std::make_unique<Session>(config, std::move(lifeline), this, this)) {}

void Peer::OnStreamOpened(uint32_t stream) {
  Add(absl::StrCat("opened ", stream));
  if (attaches) Attach(stream);
}

void Peer::OnGoaway(uint32_t last_stream, const absl::Status& status) {
  Add(absl::StrCat("goaway ", last_stream, " ", ToText(status)));
}

void Peer::OnPing() { Add("ping"); }

void Peer::OnPong(uint64_t cookie) { Add(absl::StrCat("pong ", cookie)); }

absl::Status Peer::OnEntry(uint32_t number, absl::string_view entry) {
  Add(absl::StrCat("entry ", number, " ", entry));
  return entry_status;
}

void Peer::OnConnectWanted(const std::string& fabric, const std::string& offer,
                           const std::string& token) {
  Add(absl::StrCat("connect ", fabric, " to ", offer, " with ", token));
}

void Peer::OnListenWanted() { Add("listen"); }

void Peer::OnPathChosen(const PathDescription& path) {
  Add(absl::StrCat("path ", path.fabric, " (", path.detail, ") ", path.reason));
}

void Peer::OnClosed(const absl::Status& cause) {
  Add("closed " + ToText(cause));
}

void Peer::Add(std::string line) {
  lines_.push_back(std::move(line));
  if (on_event) on_event();
}

void Peer::Flush() {
  if (session_ != nullptr) session_->Flush();
}

void Peer::PollAll() {
  std::shared_ptr<fabric::Endpoint> path = session_->path().endpoint();
  while (path != nullptr && path->HasInput() && session_->Poll()) Flush();
}

void Peer::Attach(uint32_t stream) {
  session_->AttachStream(stream, &streams_[stream]);
}

void Peer::Open(uint32_t stream) {
  Attach(stream);
  session_->output().SendHeaders(stream, "open");
}

bool Peer::Send(uint32_t stream, absl::string_view message) {
  return session_->output().SendMessage(stream, ToPayload(message), false);
}

Lines Peer::Take() { return std::exchange(lines_, Lines()); }

SessionTest::SessionTest() = default;

void SessionTest::Begin() {
  lifeline_ = std::make_unique<Link>(lifeline_options_);
  client_ = std::make_unique<Peer>(client_config_, lifeline_->Take(kClient));
  server_ = std::make_unique<Peer>(server_config_, lifeline_->Take(kServer));
  for (Side side : {kClient, kServer}) {
    peer(side)->Start();
    peer(side).Flush();
  }
}

void SessionTest::Open() {
  Begin();
  Run();
  client_->Take();
  server_->Take();
}

void SessionTest::OpenWithPath() {
  Open();
  NewLink();
  AddPath(kClient);
  AddPath(kServer);
  Run();
  client_->Take();
  server_->Take();
}

void SessionTest::NewLink() {
  fast_links_.push_back(std::make_unique<Link>(fast_options_));
}

void SessionTest::AddPath(Side side, const std::string& fabric) {
  peer(side)->path().Add(fabric, fast().Take(side));
  peer(side).Flush();
}

void SessionTest::FlushBoth() {
  client_->Flush();
  server_->Flush();
}

bool SessionTest::Step(Link* link, Side to) {
  const bool any = link->Step(to);
  peer(to).Flush();
  return any;
}

void SessionTest::StepAll(Link* link, Side to) {
  for (int i = 0; i < kMaxRounds && Step(link, to); ++i) {
  }
}

void SessionTest::Run() {
  FlushBoth();
  bool any = true;
  for (int i = 0; i < kMaxRounds && any; ++i) {
    any = false;
    for (Side side : {kClient, kServer}) {
      any |= Step(lifeline_.get(), side);
      for (auto& link : fast_links_) any |= Step(link.get(), side);
    }
  }
  EXPECT_FALSE(any) << "they answer one another for ever";
}

}  // namespace session
}  // namespace penstock
