// What a chief does before a training: says what is trained, and on which
// servers.

#ifndef PENSTOCK_PS_CLIENT_DEFINE_H_
#define PENSTOCK_PS_CLIENT_DEFINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ps/client/connection.h"
#include "ps/model/model.h"

namespace penstock::ps {

struct Definition {
  // One to each server; see Connection::Options.
  Connection::Channels servers;
  // As workers reach them, in the same order.
  std::vector<std::string> addresses;
  Model model;
  // Limits the wait for servers that are not up yet, and then each call. A
  // server may have to read a checkpoint.
  absl::Duration timeout = absl::Minutes(10);
};

struct Defined {
  std::shared_ptr<const Connection> connection;
  // Whether Worker::Initialize() is waited for: neither an earlier chief nor a
  // checkpoint has given all servers their values.
  bool wants_values = false;
  // Whether the servers had the model already, from an earlier chief.
  bool is_adopted = false;
  // The checkpoint that the servers have begun with; 0: none.
  uint64_t restored_step = 0;
};

// Defines the model at all servers. If they have it already, goes on with that
// run. A chief that died, or whose time was over, may have left any of the
// servers without a model: until a push has counted, each further call goes on
// from there, and the servers go on to restore meanwhile.
//
// All servers restore one cut, side by side: the one that server 0 chooses, if
// it is to restore. A server that cannot begin with that cut is an error.
//
// Returns errors as Connection::Open() does, DATA_LOSS if some servers have
// values that were trained and others were started anew; FAILED_PRECONDITION,
// with the difference, if the servers have another model, or if one has another
// cut or none; INVALID_ARGUMENT for a model that cannot be.
absl::StatusOr<Defined> Define(const Definition& definition);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_DEFINE_H_
