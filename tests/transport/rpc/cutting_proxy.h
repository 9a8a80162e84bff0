// A TCP proxy that breaks connections after a number of bytes, or after a
// silence, or that holds all bytes back.

#ifndef PENSTOCK_TESTS_TRANSPORT_RPC_CUTTING_PROXY_H_
#define PENSTOCK_TESTS_TRANSPORT_RPC_CUTTING_PROXY_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "transport/base/unique_fd.h"

namespace penstock {
namespace rpc {

// A TCP proxy. One thread accepts connections, and each connection has a
// thread. Thread-safe.
class CuttingProxy {
 public:
  CuttingProxy() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = Loopback(0);
    socklen_t length = sizeof address;
    (void)bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), length);
    (void)listen(listener_.get(), 100);
    (void)getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address),
                      &length);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { Accept(); });
  }
  // Cuts the remaining connections.
  ~CuttingProxy() {
    stopped_ = true;
    shutdown(listener_.get(), SHUT_RDWR);
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
  }

  int port() const { return port_; }
  // Returns the number of connections so far.
  size_t connections() {
    std::lock_guard<std::mutex> lock(mu_);
    return threads_.size();
  }
  // Sets the target of later connections, and the total bytes of both
  // directions after which they break.
  void Set(int target, size_t bytes) {
    std::lock_guard<std::mutex> lock(mu_);
    target_ = target;
    bytes_ = bytes;
  }
  // Sets the target of later connections, and the total bytes of both
  // directions after which the proxy carries no more, but keeps both ends open.
  void SetAndHold(int target, size_t bytes) {
    Set(target, bytes);
    holds_at_end_ = true;
  }
  // Breaks later connections after one of their directions was silent for
  // `silence`, like load balancers. Measures the time by waits of this proxy's
  // threads: a busy machine delays both peers and the proxy.
  void CutAfterSilence(std::chrono::milliseconds silence) {
    std::lock_guard<std::mutex> lock(mu_);
    silence_ = silence;
  }
  // Stops reading from all connections, like a stopped host.
  void Hold() { held_ = true; }
  // Returns the number of connections that have ended or were cut.
  size_t ended() {
    std::lock_guard<std::mutex> lock(mu_);
    return ended_;
  }
  // Blocks until a connection has ended. Returns false after `timeout`.
  bool AwaitEnd(std::chrono::milliseconds timeout) {
    std::unique_lock<std::mutex> lock(mu_);
    return changed_.wait_for(lock, timeout, [this] { return ended_ > 0; });
  }
  // Calls `action`, and waits until the proxy has carried a byte since the
  // call began. Repeats both for twice the time of CutAfterSilence(). Returns
  // false as soon as a connection has ended.
  bool OutlivesSilence(const std::function<void()>& action) {
    std::unique_lock<std::mutex> lock(mu_);
    const auto end = std::chrono::steady_clock::now() + 2 * silence_;
    while (ended_ == 0 && std::chrono::steady_clock::now() < end) {
      const size_t before = carried_;
      lock.unlock();
      action();
      lock.lock();
      changed_.wait(lock, [&] { return ended_ > 0 || carried_ != before; });
    }
    return ended_ == 0;
  }

 private:
  static constexpr int kWaitMs = 20;  // the longest wait for input

  static int64_t WaitsIn(std::chrono::milliseconds time) {
    return time.count() / kWaitMs;
  }
  static sockaddr_in Loopback(int port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
  }

  void Accept() {
    for (;;) {
      base::UniqueFd client(
          accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (stopped_) return;
      if (!client.valid()) continue;
      std::lock_guard<std::mutex> lock(mu_);
      threads_.emplace_back([this, fd = client.Release(), target = target_,
                             bytes = bytes_, silence = silence_] {
        Serve(base::UniqueFd(fd), target, bytes, silence);
        std::lock_guard<std::mutex> ends(mu_);
        ++ended_;
        changed_.notify_all();
      });
    }
  }

  void Serve(base::UniqueFd client, int target, size_t bytes,
             std::chrono::milliseconds silence) {
    base::UniqueFd server(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = Loopback(target);
    if (connect(server.get(), reinterpret_cast<const sockaddr*>(&address),
                sizeof address) != 0) {
      return;
    }
    std::vector<char> buffer(64 * 1024);
    int64_t waits = 0;  // waits without input so far
    int64_t heard[] = {0, 0};
    while ((bytes > 0 || holds_at_end_) && !stopped_) {
      if (held_ || bytes == 0) {
        poll(nullptr, 0, kWaitMs);
        continue;
      }
      pollfd ready[] = {{client.get(), POLLIN, 0}, {server.get(), POLLIN, 0}};
      const int count = poll(ready, 2, kWaitMs);
      if (count < 0) return;
      if (count == 0) {
        ++waits;
        if (waits - std::min(heard[0], heard[1]) > WaitsIn(silence)) return;
      }
      for (int i = 0; i < 2; ++i) {
        if (ready[i].revents == 0) continue;
        const ssize_t got =
            recv(ready[i].fd, buffer.data(), std::min(buffer.size(), bytes), 0);
        if (got <= 0) return;
        heard[i] = waits;
        bytes -= static_cast<size_t>(got);
        Count(static_cast<size_t>(got));
        if (!Forward(ready[1 - i].fd, buffer.data(), got)) return;
      }
    }
  }

  void Count(size_t bytes) {
    std::lock_guard<std::mutex> lock(mu_);
    carried_ += bytes;
    changed_.notify_all();
  }

  // Sends bytes to `fd`. Gives up on a slow reader when the proxy ends.
  bool Forward(int fd, const char* bytes, ssize_t left) {
    while (left > 0) {
      pollfd ready = {fd, POLLOUT, 0};
      if (stopped_ || poll(&ready, 1, kWaitMs) < 0) return false;
      if (ready.revents == 0) continue;
      const ssize_t sent = send(fd, bytes, static_cast<size_t>(left),
                                MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent <= 0) return false;
      bytes += sent;
      left -= sent;
    }
    return true;
  }

  const base::UniqueFd listener_;
  int port_ = 0;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> held_{false};
  std::atomic<bool> holds_at_end_{false};
  std::mutex mu_;  // guards the members below, except acceptor_
  std::condition_variable changed_;
  size_t carried_ = 0;
  size_t ended_ = 0;
  int target_ = 0;
  size_t bytes_ = 0;
  std::chrono::milliseconds silence_ = std::chrono::hours(24);
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_RPC_CUTTING_PROXY_H_
