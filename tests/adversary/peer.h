// A connection on which the test speaks the wire format itself.

#ifndef PENSTOCK_TESTS_ADVERSARY_PEER_H_
#define PENSTOCK_TESTS_ADVERSARY_PEER_H_

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "tests/adversary/security.h"
#include "tests/adversary/tls.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {

// The timeout for expected input.
constexpr std::chrono::seconds kPatience(10);
// The timeout after which a victim that reads nothing counts as stalled.
constexpr std::chrono::milliseconds kStall(500);

// The traffic of all peers of an attack.
struct Traffic {
  uint64_t connections = 0;
  uint64_t bytes = 0;
  uint64_t frames = 0;   // including units that are not messages
  uint64_t headers = 0;  // header frames; most begin a call
};

// One side of a connection to a victim. Reads only in functions that document
// it, so that a test can leave the victim's answers unread. Not thread-safe.
class Peer {
 public:
  enum class Side { kClient, kServer };

  // Takes ownership of the connected socket. `traffic` must outlive the peer.
  Peer(Side side, int socket, Traffic* traffic);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Connects to a port. Returns null if nobody listens.
  static std::unique_ptr<Peer> Connect(int port, Traffic* traffic);

  bool is_client() const { return side_ == Side::kClient; }
  // The newest protocol version that the peer speaks. Set it before
  // Negotiate().
  uint8_t version = kNewest;

  // Starts TLS, if the identity has certificates. Returns false if the victim
  // refuses.
  bool Secure(const Identity& identity);

  // Negotiates, but does not send the hello. Returns false if the victim's
  // answer is wrong.
  bool Negotiate();
  // Sends `hello`, and reads the victim's hello.
  bool Greet(const Hello& hello);
  const Hello& peer_hello() const { return peer_hello_; }

  // The treatment of input while Write() waits for room.
  enum class Reading {
    kKept,     // reads it; Next() returns it
    kDropped,  // reads it and drops it
    kNone,     // leaves it unread
  };
  Reading reading = Reading::kKept;
  // Writes raw bytes, bypassing TLS.
  void WriteRaw(absl::string_view bytes);
  // Writes raw bytes, or TLS-encrypted bytes if there is TLS. Returns false if
  // the victim has closed, or reads nothing for kStall.
  bool Write(absl::string_view bytes);
  bool stalled() const { return stalled_; }

  // Sends a frame in its own unit. Fills in the unset fields.
  bool Send(Frame frame);
  // Adds a frame to a shared unit, which is sent when it is full, or by
  // Flush().
  bool Queue(Frame frame);
  bool Flush();
  bool SendUnit(uint8_t type, uint64_t cookie, absl::string_view body);
  // Sends the frame in as many fragments as necessary.
  bool SendLong(Frame frame);

  // Returns a stream that is open on both sides. A client opens the stream with
  // `metadata`; a server waits for the victim's next call. Returns 0 if no call
  // comes.
  uint32_t OpenStream(absl::string_view metadata);

  // A received frame, or another unit with its cookie and body. Of bulk data,
  // only the size is kept.
  struct Received {
    uint8_t unit = 0;
    uint64_t cookie = 0;
    uint64_t size = 0;
    std::string body;
    Frame frame;
  };
  // Returns the next input. Returns nothing at the end of the connection, or
  // after kPatience.
  absl::optional<Received> Next() { return NextIfAny(kPatience); }
  absl::optional<Received> NextIfAny(std::chrono::milliseconds patience);
  // Returns the next frame of this type, and drops frames of other types.
  absl::optional<Frame> Await(uint8_t type,
                              std::chrono::milliseconds patience = kPatience);
  // Reads and drops all available input, without waiting.
  void Discard();
  uint64_t sequence_of_next() const { return sequence_; }
  uint64_t last_received() const { return received_; }

  // Half-closes, and reads until the end of the victim's stream, which proves
  // that the victim has read everything. Returns false if the end does not
  // come.
  bool Finish();
  // Reads until the victim ends its stream. Returns false if the end does not
  // come.
  bool AwaitEnd();
  // Returns true if the victim's end has been read.
  bool ended() const { return ended_; }
  // Resets the connection.
  void Abort();

 private:
  // Reads some input. Returns false at the end, or after `until`.
  bool ReadSome(std::chrono::steady_clock::time_point until);
  // Moves complete frames and units from bytes_ to parsed_.
  void Parse();
  void ParseMessage(absl::string_view body);
  bool WaitToWrite();
  // Sends and receives like send() and recv(), on the socket or on TLS.
  ssize_t SendBytes(absl::string_view bytes);
  ssize_t ReceiveBytes(char* into, size_t size);

  const Side side_;
  int socket_;
  std::unique_ptr<Tls> tls_;
  Traffic* const traffic_;
  Hello peer_hello_;
  bool negotiated_ = false;
  bool stalled_ = false;
  bool ended_ = false;
  uint64_t sequence_ = 1;
  uint64_t received_ = 0;
  uint32_t next_stream_ = 1;
  std::string queued_;
  std::string bytes_;      // received, not parsed
  uint64_t skipping_ = 0;  // bytes of bulk data that are still missing
  std::deque<Received> parsed_;
};

// A port to which a victim's clients connect.
class Listener {
 public:
  Listener();
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port() const { return port_; }
  // Accepts a connection. Returns null if nobody connects.
  std::unique_ptr<Peer> Accept(std::chrono::milliseconds patience,
                               Traffic* traffic);

 private:
  int socket_;
  int port_ = 0;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_PEER_H_
