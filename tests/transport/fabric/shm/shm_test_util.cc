#include "tests/transport/fabric/shm/shm_test_util.h"

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>

#include <utility>

#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "transport/base/token.h"
#include "transport/fabric/shm/address.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/setup_message.h"

namespace penstock {
namespace fabric {
namespace shm {

bool WaitUntil(const std::function<bool()>& condition) {
  const absl::Time end = absl::Now() + kTestDeadline;
  while (!condition()) {
    if (absl::Now() > end) return false;
    sched_yield();
  }
  return true;
}

ConnectCallback Outcome::callback() const {
  std::shared_ptr<State> state = state_;
  return [state](absl::StatusOr<std::unique_ptr<Endpoint>> result) {
    std::lock_guard<std::mutex> lock(state->mu);
    EXPECT_FALSE(state->done) << "called twice";
    state->result = std::move(result);
    state->done = true;
    state->changed.notify_all();
  };
}

absl::StatusOr<std::unique_ptr<Endpoint>> Outcome::Take() {
  std::unique_lock<std::mutex> lock(state_->mu);
  if (!state_->changed.wait_for(lock, absl::ToChronoSeconds(kTestDeadline),
                                [this] { return state_->done; })) {
    return absl::InternalError("the callback was not called");
  }
  return std::move(state_->result);
}

bool Outcome::finished() const {
  std::lock_guard<std::mutex> lock(state_->mu);
  return state_->done;
}

std::unique_ptr<Pair> MakePair(ShmFabric* listening, ShmFabric* connecting) {
  const std::string token = NewTestToken();
  absl::StatusOr<std::string> offer = listening->Offer();
  EXPECT_TRUE(offer.ok()) << offer.status();
  if (!offer.ok()) return nullptr;
  Outcome listened;
  Outcome connected;
  auto listen = listening->Listen(token, listened.callback());
  auto connect = connecting->Connect(*offer, token, connected.callback());
  absl::StatusOr<std::unique_ptr<Endpoint>> ends[] = {listened.Take(),
                                                      connected.Take()};
  for (const auto& end : ends) EXPECT_TRUE(end.ok()) << end.status();
  if (!ends[0].ok() || !ends[1].ok()) return nullptr;
  auto pair = absl::make_unique<Pair>();
  pair->listening.endpoint = *std::move(ends[0]);
  pair->connecting.endpoint = *std::move(ends[1]);
  pair->listening.endpoint->Start(&pair->listening.events);
  pair->connecting.endpoint->Start(&pair->connecting.events);
  return pair;
}

std::string NewTestToken() { return base::NewToken().value(); }

absl::Span<const uint8_t> AsBytes(absl::string_view text) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(text.data()),
                             text.size());
}

bool Send(Endpoint* endpoint, absl::string_view text) {
  return endpoint->Send(AsBytes(text));
}

namespace {
uint8_t PatternAt(size_t i, uint8_t seed) {
  return static_cast<uint8_t>(i * 31 + (i >> 8) + seed);
}
}  // namespace

memory::Payload PatternPayload(size_t size, uint8_t seed) {
  memory::Block block = memory::AllocateBlock(size).value();
  for (size_t i = 0; i < size; ++i) block.data.get()[i] = PatternAt(i, seed);
  return memory::Payload(block.AsBytes());
}

bool HasPattern(absl::Span<const uint8_t> bytes, uint8_t seed) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != PatternAt(i, seed)) return false;
  }
  return true;
}

size_t CountFds() {
  DIR* directory = opendir("/proc/self/fd");
  size_t count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

base::UniqueFd RawConnect(const std::string& offer,
                          const std::string& directory) {
  absl::StatusOr<base::UniqueFd> socket =
      ConnectTo(AddressIn(offer, directory).value());
  EXPECT_TRUE(socket.ok()) << socket.status();
  return socket.ok() ? *std::move(socket) : base::UniqueFd();
}

std::unique_ptr<RawPair> MakeRawPair(ShmFabric* listening, uint32_t features) {
  constexpr uint64_t kRing = 1 << 18;
  SetupMessage hello;
  hello.token = NewTestToken();
  hello.size = kRing;
  Outcome listened;
  auto listen = listening->Listen(hello.token, listened.callback());
  auto pair = absl::make_unique<RawPair>();
  pair->socket = RawConnect(listening->Offer().value());
  auto control = CreateControl(kRing, features);
  EXPECT_TRUE(SendSetup(pair->socket.get(), hello, control->fd()).ok());
  pair->control = *std::move(control);
  absl::StatusOr<std::unique_ptr<Endpoint>> end = listened.Take();
  EXPECT_TRUE(end.ok()) << end.status();
  if (!end.ok()) return nullptr;
  pair->end.endpoint = *std::move(end);
  pair->end.endpoint->Start(&pair->end.events);
  return pair;
}

SleepingEnd::SleepingEnd(Endpoint* end) : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  const std::vector<int> fds = end->wakeup_fds();
  EXPECT_EQ(fds.size(), 1u);
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLET;
  EXPECT_EQ(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fds.at(0), &event), 0);
  EXPECT_TRUE(TakeRing());  // readable initially
}

bool SleepingEnd::TakeRing() {
  epoll_event event;
  return epoll_wait(epoll_.get(), &event, 1, 0) == 1;
}

bool IsHungUp(const base::UniqueFd& socket) {
  pollfd waiting = {socket.get(), POLLRDHUP, 0};
  return poll(&waiting, 1, 0) == 1;
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
