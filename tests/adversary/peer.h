// A connection on which the wire format is spoken by hand.

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

// How long a peer waits for what must come.
constexpr std::chrono::seconds kPatience(10);
// A victim that takes nothing for so long pushes back.
constexpr std::chrono::milliseconds kStall(500);

// What all the peers of an attack have sent.
struct Traffic {
  uint64_t connections = 0;
  uint64_t bytes = 0;
  uint64_t frames = 0;   // and units that are not messages
  uint64_t headers = 0;  // of these: most are calls
};

// Nothing that comes is read but where a function says so: its owner may leave
// the victim's answers lying. Not thread-safe.
class Peer {
 public:
  enum class Side { kClient, kServer };

  // Takes the connected socket. `traffic` outlives the peer.
  Peer(Side side, int socket, Traffic* traffic);
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // Null where nobody listens.
  static std::unique_ptr<Peer> Connect(int port, Traffic* traffic);

  bool is_client() const { return side_ == Side::kClient; }

  // From now on over TLS, where the identity has it. False if the victim does
  // not go along with that.
  bool Secure(const Identity& identity);

  // Up to the hello, not with it; false if the victim does not answer so.
  bool Negotiate();
  // Sends `hello` and reads the victim's.
  bool Greet(const Hello& hello);
  const Hello& peer_hello() const { return peer_hello_; }

  // What becomes of that which comes while there is no room to write.
  enum class Reading {
    kKept,     // read, and given out by Next()
    kDropped,  // read, and forgotten
    kNone,     // left lying
  };
  Reading reading = Reading::kKept;
  // Bytes as they are; not over TLS, if there is TLS.
  void WriteRaw(absl::string_view bytes);
  // Bytes as they are, or in TLS. False where the victim has closed, or takes
  // no more for kStall.
  bool Write(absl::string_view bytes);
  bool stalled() const { return stalled_; }

  // A frame in a unit of its own. What the frame leaves unset is put right.
  bool Send(Frame frame);
  // The same, together with others in one unit: sent when it is full or by
  // Flush().
  bool Queue(Frame frame);
  bool Flush();
  bool SendUnit(uint8_t type, uint64_t cookie, absl::string_view body);
  // In as many fragments as it takes.
  bool SendLong(Frame frame);

  // A stream that is open on both sides: begun by this client, or by the
  // victim's next call; 0 where none comes. `metadata`: a client's.
  uint32_t OpenStream(absl::string_view metadata);

  // What came: a frame, or a unit of another type with its cookie and body (of
  // bulk data only the size).
  struct Received {
    uint8_t unit = 0;
    uint64_t cookie = 0;
    uint64_t size = 0;
    std::string body;
    Frame frame;
  };
  // The next; nothing at the connection's end, or when kPatience is over.
  absl::optional<Received> Next() { return NextIfAny(kPatience); }
  absl::optional<Received> NextIfAny(std::chrono::milliseconds patience);
  // The next frame of that type, others are dropped.
  absl::optional<Frame> Await(uint8_t type,
                              std::chrono::milliseconds patience = kPatience);
  // Reads whatever is there, without waiting, and drops it.
  void Discard();
  uint64_t sequence_of_next() const { return sequence_; }
  uint64_t last_received() const { return received_; }

  // Half-closes, and reads to the victim's end: it has then seen all. False if
  // that does not come.
  bool Finish();
  // Reads to the victim's end. False where it stays.
  bool AwaitEnd();
  // Whether it has been seen.
  bool ended() const { return ended_; }
  // A reset instead of an end.
  void Abort();

 private:
  // False at the end, or when `until` has come.
  bool ReadSome(std::chrono::steady_clock::time_point until);
  // The bytes that have come, as far as they are whole, into parsed_.
  void Parse();
  void ParseMessage(absl::string_view body);
  bool WaitToWrite();
  // As the system's calls, of the socket or of what is over it.
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
  std::string bytes_;      // come, not parsed
  uint64_t skipping_ = 0;  // bytes to come of bulk data
  std::deque<Received> parsed_;
};

// Where a victim's clients connect.
class Listener {
 public:
  Listener();
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  int port() const { return port_; }
  // Null if nobody comes.
  std::unique_ptr<Peer> Accept(std::chrono::milliseconds patience,
                               Traffic* traffic);

 private:
  int socket_;
  int port_ = 0;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_PEER_H_
