// The command line of ps_server.

#ifndef PENSTOCK_PS_SERVER_FLAGS_H_
#define PENSTOCK_PS_SERVER_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "ps/access/policy.h"
#include "ps/register.h"
#include "ps/tls.h"
#include "ps/usable_memory.h"

namespace penstock::ps {

struct ServerFlags {
  std::string record;    // empty: not recorded
  std::string listen;    // empty: not given
  unsigned workers = 0;  // 0: not given
  double lease_seconds = 10;
  double assemble_seconds = 60;
  double wait_seconds = 600;
  MemoryLimits limits = DefaultLimits(UsableMemory());
  std::string spill;           // the folder of rows without room; empty: none
  uint64_t spill_limit = 0;    // bytes; 0: what the disk has
  std::string checkpoints;     // the folder; empty: none
  std::string restore;         // "newest" or a step; empty: not
  bool restore_drop = false;   // tables that the model no longer has
  bool restore_evict = false;  // rows that do not fit
  double checkpoint_every_seconds = 0;  // 0: never
  unsigned keep_checkpoints = 3;
  bool incremental = false;
  EtcdFlags etcd;
  TlsFiles tls;
  AccessFiles access;
  bool stock = false;
  bool quiet = false;
};

// Adds the flags to `app`. Parsing fills `flags`.
void DeclareFlags(CLI::App* app, ServerFlags* flags);

// Checks the combination of flags. Fills in missing flags from TF_CONFIG, in
// which the server is a task of type "ps".
absl::Status CompleteFromEnvironment(ServerFlags* flags);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_FLAGS_H_
