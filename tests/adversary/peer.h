// A connection whose user speaks the wire format by hand.

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

// How long a peer waits for what has to come.
constexpr std::chrono::seconds kPatience(10);
// A victim that takes nothing for this long pushes back.
constexpr std::chrono::milliseconds kStall(500);

// What all the peers of an attack have sent.
struct Traffic {
  uint64_t connections = 0;
  uint64_t bytes = 0;
  uint64_t frames = 0;   // including units that are not messages
  uint64_t headers = 0;  // frames that are headers; most begin a call
};

// One side of a connection to a victim. Reads only in the functions that say
// so, so that its user can leave the victim's answers unread. Not thread-safe.
class Peer {
 public:
  enum class Side { kClient, kServer };

  // Takes the connected socket. `traffic` outlives the peer.
  Peer(Side side, int socket, Traffic* traffic);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Connects. Returns null if nobody listens.
  static std::unique_ptr<Peer> Connect(int port, Traffic* traffic);

  bool is_client() const { return side_ == Side::kClient; }
  // The newest version that it speaks. Set it before Negotiate().
  uint8_t version = kNewest;

  // Uses TLS from now on, if the identity has it. Returns false if the victim
  // refuses that.
  bool Secure(const Identity& identity);

  // Negotiates, up to but not including the hello. Returns false if the victim
  // does not answer as it should.
  bool Negotiate();
  // Sends `hello` and reads the victim's.
  bool Greet(const Hello& hello);
  const Hello& peer_hello() const { return peer_hello_; }

  // What Write() does with input while there is no room to write.
  enum class Reading {
    kKept,     // reads it; Next() returns it
    kDropped,  // reads it and drops it
    kNone,     // leaves it unread
  };
  Reading reading = Reading::kKept;
  // Writes bytes as they are; past TLS, if there is TLS.
  void WriteRaw(absl::string_view bytes);
  // Writes bytes as they are, or in TLS. Returns false if the victim has
  // closed, or takes nothing more for kStall.
  bool Write(absl::string_view bytes);
  bool stalled() const { return stalled_; }

  // Sends a frame in a unit of its own. Fills in the fields that the frame
  // leaves unset.
  bool Send(Frame frame);
  // The same, together with others in one unit. Sends it when it is full, or in
  // Flush().
  bool Queue(Frame frame);
  bool Flush();
  bool SendUnit(uint8_t type, uint64_t cookie, absl::string_view body);
  // Sends the frame in as many fragments as it takes.
  bool SendLong(Frame frame);

  // Returns a stream that is open on both sides: begun by this client with
  // `metadata`, or by the victim's next call. Returns 0 if no call comes.
  uint32_t OpenStream(absl::string_view metadata);

  // What came: a frame; or a unit of another type with its cookie and body, of
  // bulk data only the size.
  struct Received {
    uint8_t unit = 0;
    uint64_t cookie = 0;
    uint64_t size = 0;
    std::string body;
    Frame frame;
  };
  // Returns the next; nothing at the connection's end, or once kPatience is
  // over.
  absl::optional<Received> Next() { return NextIfAny(kPatience); }
  absl::optional<Received> NextIfAny(std::chrono::milliseconds patience);
  // Returns the next frame of that type, and drops others.
  absl::optional<Frame> Await(uint8_t type,
                              std::chrono::milliseconds patience = kPatience);
  // Reads whatever is there, without waiting, and drops it.
  void Discard();
  uint64_t sequence_of_next() const { return sequence_; }
  uint64_t last_received() const { return received_; }

  // Half-closes, and reads to the victim's end, which shows that it has seen
  // all. Returns false if that does not come.
  bool Finish();
  // Reads to the victim's end. Returns false if that does not come.
  bool AwaitEnd();
  // Returns whether the victim's end has been seen.
  bool ended() const { return ended_; }
  // Ends the connection by a reset.
  void Abort();

 private:
  // Returns false at the end, or when `until` has come.
  bool ReadSome(std::chrono::steady_clock::time_point until);
  // Moves the whole frames and units of bytes_ to parsed_.
  void Parse();
  void ParseMessage(absl::string_view body);
  bool WaitToWrite();
  // Like send() and recv(), on the socket or on TLS over it.
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
  uint64_t skipping_ = 0;  // bytes of bulk data that are still to come
  std::deque<Received> parsed_;
};

// A port where a victim's clients connect.
class Listener {
 public:
  Listener();
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port() const { return port_; }
  // Returns null if nobody connects.
  std::unique_ptr<Peer> Accept(std::chrono::milliseconds patience,
                               Traffic* traffic);

 private:
  int socket_;
  int port_ = 0;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_PEER_H_
