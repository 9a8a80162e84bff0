#include "ps/server_flags.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ps/cluster.h"
#include "ps/membership/keys.h"
#include "ps/membership/members.h"
#include "ps/replicas.h"
#include "ps/replication/view.h"
#include "transport/base/listen_address.h"

namespace penstock::ps {
namespace {

constexpr char kAnyLocalPort[] = "127.0.0.1:0";
constexpr char kNewest[] = "newest";
constexpr unsigned kMaxWorkers = 65'536;  // ranks that a server remembers
constexpr double kMinSeconds = 0.1;
constexpr double kMaxSeconds = 86'400;

// Validate a text for CLI11. Return the error, or "". CLI::Range accepts NaN,
// and CLI::AsSizeValue reads "-1" as 2^64 - 1.
std::string CheckSeconds(const std::string& text) {
  double seconds = 0;
  return absl::SimpleAtod(text, &seconds) && seconds >= kMinSeconds &&
                 seconds <= kMaxSeconds
             ? ""
             : absl::StrCat(text, " is no time from ", kMinSeconds, " to ",
                            kMaxSeconds, " seconds");
}

std::string CheckSize(const std::string& text) {
  uint64_t bytes = 0;
  return absl::SimpleAtoi(text, &bytes)
             ? ""
             : absl::StrCat(text, " is no size, such as 64GiB");
}

std::string CheckRoom(const std::string& text) {
  return text == "0" ? "0 leaves no room: give a size, such as 64GiB"
                     : CheckSize(text);
}

// Requires a port, because gRPC would use 443, and takes a larger port than
// 65535 modulo 65536. Accepts every address that names one of gRPC's schemes.
std::string CheckListen(const std::string& text) {
  for (const char* scheme :
       {"unix:", "unix-abstract:", "ipv4:", "ipv6:", "dns:"}) {
    if (absl::StartsWith(text, scheme)) return "";
  }
  const auto address = base::ListenAddress::Parse(text);
  if (!address.ok()) return std::string(address.status().message());
  return address->port.has_value()
             ? ""
             : absl::StrCat(text, " has no port: use HOST:PORT, such as ",
                            address->WithPort(2222));
}

std::string CheckStep(const std::string& text) {
  uint64_t step = 0;
  return text == kNewest || (absl::SimpleAtoi(text, &step) && step > 0)
             ? ""
             : absl::StrCat(text, " is no step, and not '", kNewest, "'");
}

void DeclareLimits(CLI::App* app, ServerFlags* flags) {
  app->add_option("--lease", flags->lease_seconds,
                  "seconds of silence after which a worker counts as dead; "
                  "the time of a push of all dense values at 32 MiB/s is added")
      ->check(CheckSeconds)
      ->capture_default_str();
  app->add_option("--assemble", flags->assemble_seconds,
                  "seconds from the first worker until the start without the "
                  "rest")
      ->check(CheckSeconds)
      ->capture_default_str();
  app->add_option("--wait", flags->wait_seconds,
                  "seconds after which a call that waits for other workers "
                  "ends")
      ->check(CheckSeconds)
      ->capture_default_str();
  app->add_option("--memory", flags->limits.dense,
                  "bytes that dense variables may take, such as 64GiB: their "
                  "values twice, and the optimizer's slots")
      ->transform(CLI::AsSizeValue(false))
      ->check(CheckRoom)
      ->default_str("a quarter of the memory that this process may use");
  app->add_option("--held-gradients", flags->limits.held_gradients,
                  "limit in bytes of gradients that wait to be applied; a "
                  "synchronous step needs the gradients of all workers")
      ->transform(CLI::AsSizeValue(false))
      ->check(CheckRoom)
      ->default_str("an eighth of that memory");
  app->add_option("--sparse-memory", flags->limits.sparse,
                  "limit in bytes of all sparse tables without a "
                  "budget_bytes in the model; 0: no limit")
      ->transform(CLI::AsSizeValue(false))
      ->check(CheckSize)
      ->default_str("half of that memory");
  app->add_option("--held-answers", flags->limits.held_answers,
                  "bytes of answers with rows, or in another type than their "
                  "table's, until their readers have read them")
      ->transform(CLI::AsSizeValue(false))
      ->check(CheckRoom)
      ->default_str("an eighth of that memory");
}

void DeclareSpill(CLI::App* app, ServerFlags* flags) {
  auto* const folder =
      app->add_option("--spill", flags->spill,
                      "a folder on a local disk, made if it is missing, for "
                      "rows of sparse tables that spill above "
                      "their budget");
  app->add_option("--spill-limit", flags->spill_limit,
                  "limit in bytes of spilled rows, such as 1TiB; RocksDB "
                  "temporarily takes more. 0: limited by the disk only")
      ->transform(CLI::AsSizeValue(false))
      ->check(CheckSize)
      ->default_str("0")
      ->needs(folder);
}

void DeclareCheckpoints(CLI::App* app, ServerFlags* flags) {
  auto* const folder =
      app->add_option("--checkpoints", flags->checkpoints,
                      "the folder of checkpoints, which all servers share")
          ->check(CLI::ExistingDirectory);
  auto* const restore =
      app->add_option(
             "--restore", flags->restore,
             "begin with the newest good checkpoint ('newest'), or with "
             "the checkpoint of a step; 'newest' is ignored if there is "
             "no checkpoint")
          ->check(CheckStep)
          ->needs(folder);
  app->add_flag("--restore-drop", flags->restore_drop,
                "with --restore: ignore tables that the model no longer has, "
                "instead of refusing the checkpoint")
      ->needs(restore);
  app->add_flag("--restore-evict", flags->restore_evict,
                "with --restore: drop the rows of sparse tables that do not "
                "fit, those first that were not used for longest, instead of "
                "refusing the checkpoint")
      ->needs(restore);
  auto* const every =
      app->add_option("--checkpoint-every", flags->checkpoint_every_seconds,
                      "seconds between two checkpoints; the first server has "
                      "all of them write. Else as 'penstock ps checkpoint' "
                      "says")
          ->check(CheckSeconds)
          ->needs(folder);
  app->add_option("--keep-checkpoints", flags->keep_checkpoints,
                  "periodic checkpoints to keep; older ones are removed; 0 "
                  "keeps all")
      ->needs(every)
      ->capture_default_str();
  app->add_flag("--incremental", flags->incremental,
                "write periodic checkpoints incrementally where possible")
      ->needs(every);
}

void DeclareEtcd(CLI::App* app, EtcdFlags* flags) {
  auto* const endpoints = app->add_option(
      "--etcd", flags->endpoints,
      "register this server in the etcd at HOST:PORT[,HOST:PORT...], where "
      "workers find it; see docs/ps/etcd.md for TLS and passwords");
  app->add_option("--etcd-prefix", flags->prefix,
                  "the name of this training in etcd")
      ->default_str(membership::kDefaultPrefix)
      ->needs(endpoints);
  app->add_option("--servers", flags->servers,
                  "servers of this training; workers wait until all of them "
                  "are registered")
      ->check(CLI::Range(1u, unsigned{membership::kMaxServers}))
      ->capture_default_str()
      ->needs(endpoints);
  app->add_option("--name", flags->name,
                  "this server's name, unique in the training; the names give "
                  "the order of the servers. Else its address")
      ->needs(endpoints);
  app->add_option("--replicas", flags->replicas,
                  "experimental: backups of each server's part of the tables, "
                  "on other servers; training survives the loss of that many "
                  "servers. All servers give the same number. Needs a --listen "
                  "with a port")
      ->check(CLI::Range(0u, unsigned{replication::kMaxReplicas - 1}))
      ->capture_default_str()
      ->needs(endpoints);
  app->add_option("--advertise", flags->advertise,
                  "the address by which workers reach this server; else that "
                  "of --listen, with this machine's name")
      ->needs(endpoints);
}

void DeclareSecurity(CLI::App* app, ServerFlags* flags) {
  app->add_option("--ca", flags->tls.ca,
                  "use TLS, and admit workers whom this PEM file vouches for")
      ->check(CLI::ExistingFile);
  app->add_option("--cert", flags->tls.cert, "the certificate to show (PEM)")
      ->check(CLI::ExistingFile);
  app->add_option("--key", flags->tls.key, "its private key (PEM)")
      ->check(CLI::ExistingFile);
  app->add_option("--access", flags->access.rules,
                  "who may read, train or administer, by names in "
                  "certificates: a file of rules, see docs/ps.md; read again "
                  "at SIGHUP, as that of --secret is")
      ->check(CLI::ExistingFile);
  app->add_option("--secret", flags->access.secret,
                  "a file with the secret that each call has to have, where "
                  "there is no TLS")
      ->check(CLI::ExistingFile);
}

absl::Status CheckSecurity(const ServerFlags& flags) {
  absl::Status tls = flags.tls.Check();
  if (!tls.ok() || flags.access.rules.empty() || flags.tls.given()) return tls;
  return absl::InvalidArgumentError(
      "--access has rules about names in certificates, and there is no TLS: "
      "give --ca, --cert and --key as well");
}

}  // namespace

void DeclareFlags(CLI::App* app, ServerFlags* flags) {
  app->add_option("--listen", flags->listen,
                  "address; port 0 takes a free one; else this task's in "
                  "TF_CONFIG, else 127.0.0.1:0")
      ->check(CheckListen);
  app->add_option("--workers", flags->workers,
                  "workers that the start waits for; else those in TF_CONFIG")
      ->check(CLI::Range(1u, kMaxWorkers));
  DeclareLimits(app, flags);
  DeclareSpill(app, flags);
  DeclareCheckpoints(app, flags);
  DeclareEtcd(app, &flags->etcd);
  DeclareSecurity(app, flags);
  app->add_option("--record", flags->record,
                  "record the traffic to this file, to be replayed");
  app->add_flag("--stock", flags->stock, "stock gRPC, without Penstock");
  app->add_flag("--quiet", flags->quiet, "no log lines");
}

absl::Status CompleteFromEnvironment(ServerFlags* flags) {
  absl::Status security = CheckSecurity(*flags);
  if (!security.ok()) return security;
  if (flags->listen.empty() || flags->workers == 0) {
    auto cluster = ClusterFromEnvironment();
    if (cluster.ok() && cluster->role != Role::kServer) {
      return absl::InvalidArgumentError(
          "task.type in TF_CONFIG is not ps, but this is a parameter server");
    }
    if (cluster.ok()) {
      if (flags->listen.empty()) {
        flags->listen = cluster->peers()[cluster->index];
      }
      if (flags->workers == 0) {
        flags->workers = static_cast<unsigned>(cluster->workers.size());
      }
    } else if (!absl::IsNotFound(cluster.status())) {
      return cluster.status();
    }
  }
  if (flags->workers == 0) {
    return absl::InvalidArgumentError(
        "no cluster: give --workers (and --listen), or set TF_CONFIG");
  }
  if (flags->listen.empty()) flags->listen = kAnyLocalPort;
  const std::string wrong = CheckListen(flags->listen);
  if (!wrong.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the address in TF_CONFIG: ", wrong));
  }
  if (flags->etcd.prefix.empty()) {
    flags->etcd.prefix = membership::kDefaultPrefix;
  }
  absl::Status etcd = flags->etcd.Check();
  if (etcd.ok() && flags->etcd.replicas > 0) {
    etcd = FixedPort(flags->listen).status();
  }
  return etcd;
}

}  // namespace penstock::ps
