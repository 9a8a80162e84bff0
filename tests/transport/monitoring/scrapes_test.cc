#include "transport/monitoring/scrapes.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "transport/base/unique_fd.h"
#include "transport/progress/acceptor.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace monitoring {
namespace {

constexpr char kAsk[] = "GET /metrics HTTP/1.1\r\n\r\n";

// A collecting function that waits until the test releases it.
class Collector {
 public:
  std::string Collect() {
    std::unique_lock<std::mutex> lock(mu_);
    const int number = ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return goes_on_; });
    return absl::StrCat("collection ", number);
  }
  void WaitUntilBegun(int number) {
    std::unique_lock<std::mutex> lock(mu_);
    changed_.wait(lock, [&] { return begun_ >= number; });
  }
  void LetGoOn() {
    std::lock_guard<std::mutex> lock(mu_);
    goes_on_ = true;
    changed_.notify_all();
  }
  int begun() {
    std::lock_guard<std::mutex> lock(mu_);
    return begun_;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  int begun_ = 0;
  bool goes_on_ = false;
};

class Client {
 public:
  Client(int port, const std::string& request)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_.get(), reinterpret_cast<sockaddr*>(&address),
                      sizeof address),
              0);
    EXPECT_EQ(send(fd_.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
  }

  // Reads to the end.
  std::string Answer() {
    std::string answer;
    char bytes[4096];
    for (;;) {
      pollfd ready = {fd_.get(), POLLIN, 0};
      if (poll(&ready, 1, 20 * 1000) != 1) return "no end";
      const ssize_t got = recv(fd_.get(), bytes, sizeof bytes, 0);
      if (got <= 0) return answer;
      answer.append(bytes, static_cast<size_t>(got));
    }
  }

 private:
  base::UniqueFd fd_;
};

class ScrapesTest : public testing::Test {
 protected:
  ScrapesTest() {
    progress::EventLoop* const loop =
        progress::EventLoop::GetForMonitoring().value();
    // The objects, which are never destroyed, like those of a process.
    static auto* const all = new std::vector<std::unique_ptr<Scrapes>>;
    all->push_back(std::make_unique<Scrapes>(
        loop, [collector = collector_] { return collector->Collect(); }));
    Scrapes* const scrapes = all->back().get();
    sockaddr_storage address = {};
    address.ss_family = AF_INET;
    reinterpret_cast<sockaddr_in&>(address).sin_addr.s_addr =
        htonl(INADDR_LOOPBACK);
    acceptor_ =
        progress::Acceptor::Begin(
            loop, progress::ListenAt(address, sizeof(sockaddr_in)).value(),
            {[scrapes](base::UniqueFd socket, const sockaddr_storage& peer) {
               scrapes->Begin(std::move(socket), peer);
             },
             [scrapes] { return scrapes->MakeRoom(); },
             [scrapes] { return scrapes->IsFull(); }})
            .value();
  }
  ~ScrapesTest() override {
    collector_->LetGoOn();
    acceptor_->Stop();
  }

  int port() const { return acceptor_->port(); }

  const std::shared_ptr<Collector> collector_ = std::make_shared<Collector>();
  std::shared_ptr<progress::Acceptor> acceptor_;
};

TEST_F(ScrapesTest, OneCollectionIsForAllWhoAskMeanwhile) {
  Client first(port(), kAsk);
  collector_->WaitUntilBegun(1);
  std::vector<std::unique_ptr<Client>> others;
  for (int i = 0; i < 20; ++i) {
    others.push_back(std::make_unique<Client>(port(), kAsk));
  }
  // Waits for this client, the last in the queue. By then, the earlier clients
  // were accepted.
  EXPECT_TRUE(absl::StrContains(
      Client(port(), "GET / HTTP/1.1\r\n\r\n").Answer(), "404"));
  collector_->LetGoOn();
  EXPECT_TRUE(absl::EndsWith(first.Answer(), "\r\n\r\ncollection 1"));
  for (const auto& other : others) {
    EXPECT_TRUE(absl::EndsWith(other->Answer(), "\r\n\r\ncollection 2"));
  }
  EXPECT_EQ(collector_->begun(), 2);
}

// Tests a function of the program that does not return from a scrape.
TEST_F(ScrapesTest, WhereCollectingIsStuckClientsAreLetGo) {
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 60; ++i) {
    clients.push_back(std::make_unique<Client>(port(), kAsk));
  }
  collector_->WaitUntilBegun(1);
  for (const auto& client : clients) EXPECT_EQ(client->Answer(), "");
  EXPECT_EQ(collector_->begun(), 1);
}

TEST_F(ScrapesTest, ClientsThatGoAreForgotten) {
  for (int i = 0; i < 200; ++i) Client(port(), i % 2 == 0 ? kAsk : "GET ");
  collector_->WaitUntilBegun(1);
  collector_->LetGoOn();
  EXPECT_TRUE(absl::StrContains(Client(port(), kAsk).Answer(), "200 OK"));
}

}  // namespace
}  // namespace monitoring
}  // namespace penstock
