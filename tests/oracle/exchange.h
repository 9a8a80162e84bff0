// Sends and receives messages, identically for both sides of a call.

#ifndef PENSTOCK_TESTS_ORACLE_EXCHANGE_H_
#define PENSTOCK_TESTS_ORACLE_EXCHANGE_H_

#include <functional>
#include <thread>
#include <vector>

#include "grpcpp/impl/call_op_set.h"
#include "grpcpp/support/byte_buffer.h"
#include "tests/oracle/content.h"
#include "tests/oracle/meeting.h"
#include "tests/oracle/program.h"

namespace penstock::oracle {

// Plays one side of a call. `Call` is ClientCall or ServerCall.
template <typename Call>
class Exchange {
 public:
  // Makes an exchange for one side. `settle` waits until everything in flight,
  // in both directions, has arrived. `peer_runs` returns true if the peer's
  // handler is certainly running. All arguments must outlive the exchange.
  // Appends received messages to `received`.
  Exchange(Call* call, Meeting* meeting, Side self, bool peer_runs,
           std::function<void()> settle, std::vector<Digest>* received)
      : call_(call),
        meeting_(meeting),
        self_(self),
        peer_(self == Side::kClient ? Side::kServer : Side::kClient),
        lateness_(peer_runs ? kPatience : kShortPatience),
        settle_(std::move(settle)),
        received_(received) {}

  // Plays one phase. Returns false if the call has ended. If `ends`, sends
  // nothing afterwards.
  bool Play(size_t index, const std::vector<Message>& out,
            const std::vector<Message>& in, bool late, bool ends) {
    if (in.empty()) return Send(index, out, ends);
    if (out.empty()) return Receive(index, in.size(), late);
    bool sent = false;
    std::thread sender([&] { sent = Send(index, out, ends); });
    const bool came = Receive(index, in.size(), late);
    sender.join();
    return sent && came;
  }

  bool Send(size_t index, const std::vector<Message>& messages, bool ends) {
    size_t bytes = 0;
    bool said = false;
    bool ok = true;
    for (size_t i = 0; ok && i < messages.size(); ++i) {
      bytes += messages[i].size;
      if (bytes > kUnreadBytes && !said) {
        meeting_->Reach(self_, SentPoint(index));
        said = true;
      }
      const bool is_last = i + 1 == messages.size();
      ok = call_->Write(ToBuffer(messages[i]),
                        OptionsOf(messages[i], i == 0, is_last, ends));
    }
    if (!said) meeting_->Reach(self_, SentPoint(index));
    return ok;
  }

  bool Receive(size_t index, size_t count, bool late) {
    if (late && meeting_->Await(peer_, SentPoint(index), lateness_)) settle_();
    for (size_t i = 0; i < count; ++i) {
      if (!ReceiveOne()) return false;
    }
    return true;
  }
  void Drain() {
    while (ReceiveOne()) {
    }
  }

 private:
  // The timeout for a peer that may not come.
  static constexpr std::chrono::milliseconds kShortPatience{30};
  // The bytes that gRPC accepts while nobody reads: less than HTTP/2's initial
  // window.
  static constexpr size_t kUnreadBytes = 16 * 1024;

  static grpc::WriteOptions OptionsOf(const Message& message, bool is_first,
                                      bool is_last, bool ends) {
    grpc::WriteOptions options;
    if (message.plain) options.set_no_compression();
    if (message.hint && !is_first && !is_last && message.size < kUnreadBytes) {
      // Asks gRPC to hold back the message until another follows, which stock
      // gRPC may do. Until then, the write of a first or large message does not
      // complete.
      options.set_buffer_hint();
    }
    if (is_last && ends) options.set_last_message();
    return options;
  }
  bool ReceiveOne() {
    grpc::ByteBuffer message;
    if (!call_->Read(&message)) return false;
    received_->push_back(DigestOf(message));
    return true;
  }

  Call* const call_;
  Meeting* const meeting_;
  const Side self_;
  const Side peer_;
  const std::chrono::milliseconds lateness_;
  const std::function<void()> settle_;
  std::vector<Digest>* const received_;
};

// Returns metadata in a comparable form: values of each key in order, without
// the user agent, which names the transport.
template <typename Map>
Metadata ToMetadata(const Map& map) {
  Metadata metadata;
  for (const auto& each : map) {
    std::string key(each.first.data(), each.first.size());
    std::string value(each.second.data(), each.second.size());
    if (key == "user-agent") value.clear();
    metadata.emplace_back(std::move(key), std::move(value));
  }
  return metadata;
}

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_EXCHANGE_H_
