// A fixture of streams over each available fabric.

#ifndef PENSTOCK_TESTS_TRANSPORT_RPC_STREAM_FIXTURE_H_
#define PENSTOCK_TESTS_TRANSPORT_RPC_STREAM_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/transport/rpc/rpc_fixture.h"

namespace penstock {
namespace rpc {

using Incoming = std::shared_ptr<IncomingStream>;

inline memory::Payload WithOwner(
    const std::shared_ptr<const std::string>& text) {
  return memory::Payload(memory::Bytes{
      reinterpret_cast<const uint8_t*>(text->data()), text->size(), text});
}

// Sends each message of the client back, until the half-close.
inline void Echo(const Incoming& stream) {
  stream->Read([stream](absl::optional<memory::Payload> message) {
    if (!message.has_value()) return stream->Finish({absl::OkStatus(), "bye"});
    stream->Write(*message, [stream](bool is_accepted) {
      if (is_accepted) Echo(stream);
    });
  });
}

class StreamFixture : public RpcFixture {
 protected:
  // The client's side of a stream, and its reports.
  struct Opened {
    std::unique_ptr<OutgoingStream> stream;
    Awaited<std::string> metadata;
    Awaited<End> end;
    Awaited<bool> accepted;

    void Write(const std::string& text) const {
      stream->Write(Text(text),
                    [accepted = accepted](bool is) { accepted.Set(is); });
    }
    // Returns the next message, or "no message".
    std::string Read() const {
      Awaited<absl::optional<memory::Payload>> got;
      stream->Read([got](absl::optional<memory::Payload> message) {
        got.Set(std::move(message));
      });
      const absl::optional<absl::optional<memory::Payload>> report = got.Get();
      if (!report.has_value()) return "no report";
      return report->has_value() ? ToString(**report) : "no message";
    }
    absl::StatusCode EndCode() const {
      const absl::optional<End> ended = end.Get();
      return ended.has_value() ? ended->status.code() : absl::StatusCode::kOk;
    }
  };

  void ServeStreams(Server::StreamHandler handler) {
    Server::Options options;
    options.address = "127.0.0.1:0";
    options.token = kToken;
    options.settings = MakeSettings();
    options.max_receive_bytes = 1 << 20;
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(
        options,
        [](const std::shared_ptr<IncomingCall>& call) {
          call->Respond(Response());
        },
        std::move(handler));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  // Starts a server that gives its streams to the test.
  void ServeNothing() {
    ServeStreams([incoming = incoming_](Incoming stream) {
      incoming.Set(std::move(stream));
    });
  }
  static Opened Open(Client* client, Request request) {
    Opened opened;
    opened.stream = client->Open(
        std::move(request),
        [metadata = opened.metadata](std::string got) {
          metadata.Set(std::move(got));
        },
        [end = opened.end](End got) { end.Set(std::move(got)); });
    return opened;
  }
  static std::string Read(IncomingStream* stream) {
    Awaited<std::string> got;
    stream->Read([got](absl::optional<memory::Payload> message) {
      got.Set(message.has_value() ? ToString(*message) : "no message");
    });
    return got.Get().value_or("no report");
  }

  const Awaited<Incoming> incoming_;
};

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_RPC_STREAM_FIXTURE_H_
