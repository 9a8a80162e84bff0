// A listener that is not a gRPC server.

#ifndef PENSTOCK_TESTS_E2E_CALLS_ODD_PORT_H_
#define PENSTOCK_TESTS_E2E_CALLS_ODD_PORT_H_

#include <atomic>
#include <future>
#include <ostream>
#include <string>
#include <thread>

namespace penstock::e2e {

// The behaviour of the port towards a client.
enum class Manner {
  kHttp1,            // answers "HTTP/1.1 400", and hangs up
  kHttp1Stays,       // answers "HTTP/1.1 400"
  kTls,              // answers with a TLS alert, and hangs up
  kSsh,              // sends a version line first, like SSH
  kNothing,          // sends nothing
  kHangsUp,          // hangs up immediately
  kHangsUpLater,     // reads the preface, and hangs up
  kHalfSettings,     // sends the beginning of a SETTINGS frame
  kHalfThenHangsUp,  // sends the beginning of a SETTINGS frame, and hangs up
  kOtherFrame,       // first sends another frame of HTTP/2
  kAcknowledges,  // acknowledges the client's SETTINGS without sending its own
  kSettings,      // sends SETTINGS like a gRPC server, and nothing else
  kPenstock,      // answers like a Penstock server, and sends nothing else
  kPenstockHangsUp,   // answers like a Penstock server, and hangs up
  kPenstockNonsense,  // answers like a Penstock server, then sends nonsense
};

std::string NameOf(Manner manner);
std::ostream& operator<<(std::ostream& out, Manner manner);

// Listens on a free port of 127.0.0.1, on its own thread.
class OddPort {
 public:
  explicit OddPort(Manner manner);
  // Closes all connections.
  ~OddPort();
  OddPort(const OddPort&) = delete;
  OddPort& operator=(const OddPort&) = delete;

  std::string address() const;
  int connections() const { return connections_; }
  // Blocks until a client has received the port's answer and closes its
  // connection. Call only with a Manner that leaves connections open. Returns
  // false after a timeout.
  bool ClientHangsUp();

 private:
  void Serve();

  const Manner manner_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> connections_{0};
  std::promise<int> first_open_;  // the first connection that was left open
  std::thread thread_;
};

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_CALLS_ODD_PORT_H_
