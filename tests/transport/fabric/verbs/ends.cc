#include "tests/transport/fabric/verbs/ends.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/transport/fabric/conformance/verbs_pair.h"
#include "tests/transport/fabric/verbs/drain_loop.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

Options At(Options options, const std::string& address) {
  options.addresses = {address};
  return options;
}

FakeVerbs* NewApi(const NetworkOptions& network) {
  static auto* const all = new std::vector<std::unique_ptr<FakeVerbs>>;
  all->push_back(absl::make_unique<FakeVerbs>(network));
  return all->back().get();
}

}  // namespace

Ends::Ends(DeviceOptions device, Options options, NetworkOptions network)
    : api(NewApi(network)),
      listening(absl::make_unique<VerbsFabric>(At(options, "10.0.0.2"), api)),
      connecting(absl::make_unique<VerbsFabric>(At(options, "10.0.0.1"), api)) {
  device.name = "client";
  device.addresses = {"10.0.0.1"};
  api->AddDevice(device);
  device.name = "server";
  device.addresses = {"10.0.0.2"};
  api->AddDevice(device);
}

Ends::~Ends() {
  api->Release();
  Close();
  listening.reset();
  connecting.reset();
  DrainLoop();
  if (forgiven_) return;
  EXPECT_EQ(api->leaks(), std::vector<std::string>());
}

absl::Status Ends::Connect() {
  Close();
  server.events = Recorder();
  client.events = Recorder();
  absl::StatusOr<EndpointPair> pair =
      ConnectPair(listening.get(), connecting.get());
  if (!pair.ok()) return pair.status();
  server.endpoint = std::move(pair->first);
  client.endpoint = std::move(pair->second);
  server->Start(&server.events);
  client->Start(&client.events);
  return absl::OkStatus();
}

void Ends::Exchange() {
  for (bool any = true; any;) {
    DrainLoop();
    any = false;
    for (End* end : {&server, &client}) {
      while (end->endpoint != nullptr && (*end)->Poll()) any = true;
    }
  }
}

bool Ends::ExchangeUntil(const std::function<bool()>& condition) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    Exchange();
  }
  return true;
}

void Ends::Close() {
  server.endpoint.reset();
  client.endpoint.reset();
  DrainLoop();
}

int Ends::CountOfConnections() {
  const Counts counts = api->counts();
  // The number of the connection manager's objects that stay: each fabric has a
  // channel, and may have a listening identifier.
  const int kept =
      counts.event_channels + std::min(counts.event_channels, counts.ids);
  return counts.objects() - kept;
}

bool Ends::Send(const End& end, absl::string_view text) {
  return end->Send(
      {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

memory::Payload Ends::PayloadOf(const std::string& text) {
  auto owner = std::make_shared<const std::string>(text);
  return memory::Payload(memory::Bytes{
      reinterpret_cast<const uint8_t*>(owner->data()), owner->size(), owner});
}

std::string Ends::ReadAll(End* end, const RemoteRegion& region) {
  std::string all;
  for (const RemotePart& part : region) {
    const std::string bytes = ReadPart(end, part);
    if (bytes.size() < part.length) return "";
    all += bytes;
  }
  return all;
}

std::string Ends::ReadPart(End* end, const RemotePart& part) {
  std::string all(part.length, '.');
  const size_t chunk = (*end)->capabilities().read_chunk_bytes;
  for (size_t at = 0; at < all.size(); at += chunk) {
    const size_t size = std::min(chunk, all.size() - at);
    const uint64_t cookie = ++next_cookie_;
    end->events.within_read = true;
    (*end)->Read(part, at, {reinterpret_cast<uint8_t*>(&all[at]), size},
                 cookie);
    end->events.within_read = false;
    Exchange();
    if (!end->events.Succeeded(cookie)) return "";
  }
  return all;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
