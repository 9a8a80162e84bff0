#!/usr/bin/python3 -B
"""Checks the files in deploy/: linters must find nothing, and each command in
a file must be known to its program."""

import json
import os
import pathlib
import re
import shlex
import shutil
import string
import subprocess
import sys
import tempfile
import unittest

import pytest

DEPLOY = pathlib.Path("deploy")
SLURM = sorted(DEPLOY.glob("slurm/*.sbatch"))
MANIFESTS = sorted(DEPLOY.glob("kubernetes/*.yaml"))
ETCD, SERVERS, REPLICATED, TENSORFLOW = (
    DEPLOY / "kubernetes" / f"{name}.yaml"
    for name in ("etcd", "parameter-server", "replicated-servers",
                 "tensorflow"))
TRAININGS = (SERVERS, TENSORFLOW)
# The folder of the linters, which tools/setup --deploy installs.
LINTERS = pathlib.Path(os.environ.get("XDG_CACHE_HOME")
                       or pathlib.Path.home() / ".cache") / "penstock/deploy"
# The oldest release whose schemas include all that the manifests use.
KUBERNETES = "1.31"
PROGRAMS = {
    "penstock": "cli/penstock",
    "ps_server": "ps/ps_server",
    "digits_worker": "examples/digits/digits_worker",
}
TO_JSON = "import json, sys, yaml; print(json.dumps(list(" \
    "yaml.safe_load_all(sys.stdin))))"


def run(*command, **more):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **more)


def linter(name):
    path = shutil.which(name) or LINTERS / "bin" / name
    if not os.path.exists(path):
        raise unittest.SkipTest(f"no {name} here: run tools/setup --deploy")
    return path


def without_comments(text):
    """Returns the manifest with all offered options enabled, that is,
    uncommented. An option begins with "- ", "name: " or "add: [". Comments in
    words stay."""
    return re.sub(r"^( *)# ((?:  )?(?:- \{|add: \[|rdma/\w+: |\w+:$))", r"\1\2",
                  text, flags=re.MULTILINE)


def objects(text):
    """Returns the objects of a manifest, read by the linters' YAML library."""
    linter("kubernetes-validate")
    return json.loads(run(LINTERS / "bin/python3", "-c", TO_JSON,
                          input=text).stdout)


def pods(text):
    return [each["spec"]["template"]["spec"] for each in objects(text)
            if "template" in each["spec"]]


def containers(text):
    return [container for pod in pods(text) for container in pod["containers"]]


EVERYBODY = "everybody"
PROMETHEUS = {
    "namespaceSelector": {
        "matchLabels": {"kubernetes.io/metadata.name": "monitoring"}},
    "podSelector": {
        "matchLabels": {"app.kubernetes.io/name": "prometheus"}},
}


def is_covered(port, ports):
    """Returns True if a rule covers the port. A rule without ports covers all
    ports."""
    return not ports or any(
        "port" not in each or
        each["port"] <= port <= each.get("endPort", each["port"])
        for each in ports if each.get("protocol", "TCP") == "TCP")


def callers_of(port, labels, every):
    """Returns the peers that may reach the port of pods with these labels."""
    policies = [each["spec"] for each in every
                if each["kind"] == "NetworkPolicy"
                and "Ingress" in each["spec"]["policyTypes"]
                and each["spec"]["podSelector"]["matchLabels"].items()
                <= labels.items()]
    if not policies:
        return [EVERYBODY]
    return [caller for policy in policies for rule in policy["ingress"]
            if is_covered(port, rule.get("ports"))
            for caller in rule.get("from", [EVERYBODY])]


def commands(container):
    """Returns the words of each command of a container: its own command, its
    probes, and its hooks, with the container's variables."""
    yield container["command"] + container.get("args", [])
    for hook in container.get("lifecycle", {}).values():
        shell, option, line = hook["exec"]["command"]
        assert (shell, option) == ("sh", "-c")
        variables = {each["name"]: each.get("value", "x")
                     for each in container["env"]}
        repeated = re.fullmatch(
            r"for i in \$\(seq \d+\); do (.*) && break; sleep \d+; done\n?", line)
        yield shlex.split(
            string.Template(repeated.group(1)).substitute(variables))
    for key, probe in container.items():
        if key.endswith("Probe") and "exec" in probe:
            yield probe["exec"]["command"]


def unknown_flags(command):
    """Returns the flags of a command that its program does not know."""
    program = PROGRAMS[command[0]]
    verb = command[1:2] if command[0] == "penstock" else []
    if verb == ["ps"]:
        verb = command[1:3]
    known = set(re.findall(r"--[a-z-]+", run(program, *verb, "--help").stdout))
    used = {word.partition("=")[0] for word in command
            if word.startswith("--")}
    return used - known


class DockerfileTest(unittest.TestCase):
    text = (DEPLOY / "Dockerfile").read_text()

    def test_hadolint_finds_nothing(self):
        done = run(linter("hadolint"), "--no-color", DEPLOY / "Dockerfile")
        self.assertEqual(done.stdout, "")

    def test_its_commands_are_known(self):
        found = [json.loads(words) for words in
                 re.findall(r"\bCMD (\[.*\])", self.text)]
        ours = [command for command in found if command[0] in PROGRAMS]
        self.assertEqual({command[0] for command in ours},
                         {"penstock", "ps_server"})
        for command in ours:
            self.assertEqual(unknown_flags(command), set(), command)

    def test_it_has_the_release_that_the_plugin_is_for(self):
        # The release that tools/setup --tensorflow installs.
        newest = re.search(r"([\d.]+)\)\n",
                           pathlib.Path("tools/tensorflow.sh").read_text())[1]
        self.assertIn(f"tensorflow-cpu=={newest} ", self.text)


class KubernetesTest(unittest.TestCase):

    def check(self, text):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            done = run(linter("kubernetes-validate"), "--strict", "--quiet",
                       "-k", KUBERNETES, file.name)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_manifests_are_valid(self):
        self.assertEqual(MANIFESTS, [ETCD, SERVERS, REPLICATED, TENSORFLOW])
        for path in MANIFESTS:
            self.check(path.read_text())

    def test_they_are_valid_with_what_they_offer_in_comments(self):
        for path in TRAININGS:
            text = without_comments(path.read_text())
            self.check(text)
            for wanted in ("IPC_LOCK", "rdma/hca", "hostPath",
                           "PENSTOCK_SHM_DIRECTORY"):
                self.assertIn(wanted, json.dumps(objects(text)), path)

    def test_what_is_wrong_is_noticed(self):
        text = SERVERS.read_text()
        for before, after in (("replicas: 2", "replicas: two"),
                              ("clusterIP:", "clusterIp:")):
            with self.assertRaises(AssertionError):
                self.check(text.replace(before, after, 1))

    def test_metrics_are_open_to_prometheus_only(self):
        for path in (*TRAININGS, REPLICATED):
            text = path.read_text()
            metrics = [each for each in objects(text)
                       if "PENSTOCK_METRICS" in json.dumps(each)]
            self.assertTrue(metrics, path)
            for each in metrics:
                labels = each["spec"]["template"]["metadata"]["labels"]
                callers = callers_of(9464, labels, objects(text))
                self.assertEqual(callers, [PROMETHEUS], path)

    def test_a_port_that_is_open_to_all_is_noticed(self):
        text = SERVERS.read_text()
        labels = {"app": "ps"}
        self.assertIn(EVERYBODY, callers_of(2222, labels, objects(text)))
        self.assertIn(EVERYBODY, callers_of(9464, {}, objects(text)))
        open_range = text.replace("{port: 2222}\n",
                                  "{port: 2222, endPort: 9999}\n", 1)
        self.assertIn(EVERYBODY,
                      callers_of(9464, labels, objects(open_range)))

    def test_their_commands_are_known(self):
        found = [command for path in MANIFESTS
                 for container in containers(path.read_text())
                 for command in commands(container)
                 if command[0] in PROGRAMS]
        self.assertEqual({command[0] for command in found}, set(PROGRAMS))
        for command in found:
            self.assertEqual(unknown_flags(command), set(), command)

    def test_servers_and_workers_are_as_many_as_are_waited_for(self):
        _, service, servers, workers = objects(SERVERS.read_text())
        name = f"{service['metadata']['name']}"
        server, worker = (each["spec"]["template"]["spec"]["containers"][0]
                          for each in (servers, workers))
        port = server["ports"][0]["containerPort"]
        addresses = ",".join(f"{name}-{n}.{name}:{port}" for n in
                             range(servers["spec"]["replicas"]))
        self.assertIn(f"--servers={addresses}", worker["args"])
        count = workers["spec"]["completions"]
        self.assertEqual(count, workers["spec"]["parallelism"])
        for container in server, worker:
            self.assertIn(f"--workers={count}", container["args"])

    def test_the_members_of_etcd_know_each_other(self):
        service, members = (
            next(each for each in objects(ETCD.read_text())
                 if each["kind"] == kind) for kind in ("Service", "StatefulSet"))
        container = members["spec"]["template"]["spec"]["containers"][0]
        name = members["metadata"]["name"]
        cluster = ",".join(
            f"{name}-{n}=http://{name}-{n}.{service['metadata']['name']}:2380"
            for n in range(members["spec"]["replicas"]))
        self.assertIn(f"--initial-cluster={cluster}", container["args"])

    def test_only_pods_of_the_training_reach_etcd(self):
        everything = objects(ETCD.read_text())
        self.assertNotIn(EVERYBODY, callers_of(2379, {"app": "etcd"}, everything))
        self.assertNotIn(EVERYBODY, callers_of(2380, {"app": "etcd"}, everything))

    def test_servers_with_backups_may_be_drained_one_after_another(self):
        everything = {each["kind"]: each
                      for each in objects(REPLICATED.read_text())}
        servers = everything["StatefulSet"]["spec"]
        pod = servers["template"]["spec"]
        container = pod["containers"][0]
        budget = everything["PodDisruptionBudget"]["spec"]
        self.assertIn(f"--servers={servers['replicas']}", container["args"])
        self.assertIn(f"--replicas={budget['maxUnavailable']}",
                      container["args"])
        self.assertEqual(budget["selector"], servers["selector"])
        self.assertEqual(servers["podManagementPolicy"], "OrderedReady")
        _, drain = commands({**container, "livenessProbe": {},
                             "readinessProbe": {}, "startupProbe": {}})
        self.assertEqual(drain[:3], ["penstock", "ps", "drain"])
        within = next(word.partition("=")[2] for word in drain
                      if word.startswith("--within="))
        self.assertLess(int(within.rstrip("s")),
                        pod["terminationGracePeriodSeconds"])
        flags = dict(word.split("=", 1) for word in container["args"])
        self.assertEqual(
            drain[3], f"etcd://{flags['--etcd']}/{flags['--etcd-prefix']}")

    def run_hook(self, succeeds):
        """Returns the commands that the hook runs. The shell's condition
        `succeeds` is the result of each drain."""
        servers = next(each for each in objects(REPLICATED.read_text())
                       if each["kind"] == "StatefulSet")
        container = servers["spec"]["template"]["spec"]["containers"][0]
        hook = container["lifecycle"]["preStop"]["exec"]["command"]
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log")
            for name, line in (("penstock", succeeds), ("sleep", "true")):
                program = pathlib.Path(folder, name)
                program.write_text(
                    f'#!/bin/sh\ncd {folder}\necho "{name} $*" >> log\n{line}\n')
                program.chmod(0o755)
            run(*hook, env={"PATH": f"{folder}:{os.environ['PATH']}",
                            "TRAINING": "etcd://a/b", "POD": "ps-1",
                            "CALLS": "--ca=x"})
            return log.read_text().splitlines()

    def test_the_hook_drains_until_it_succeeds(self):
        drain = "penstock ps drain etcd://a/b ps-1 --within=600s --ca=x"
        self.assertEqual(self.run_hook("[ $(grep -c drain log) -ge 3 ]"),
                         [drain, "sleep 2"] * 2 + [drain])

    def test_the_hook_ends_if_nobody_can_take_the_shards(self):
        self.assertEqual(len(self.run_hook("false")), 2 * 300)

    def test_each_pod_of_tensorflow_is_another_task_of_the_cluster(self):
        job = objects(TENSORFLOW.read_text())[-1]
        container = job["spec"]["template"]["spec"]["containers"][0]
        cluster = next(each["value"] for each in container["env"]
                       if each["name"] == "CLUSTER")
        tasks = set()
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "python3")
            program.write_text('#!/bin/sh\nprintf %s "$TF_CONFIG"\n')
            program.chmod(0o755)
            for index in range(job["spec"]["completions"]):
                done = run(*container["command"], env={
                    "PATH": f"{folder}:{os.environ['PATH']}",
                    "INDEX": str(index), "CLUSTER": cluster})
                config = json.loads(done.stdout)
                task = config["task"]
                self.assertEqual(config["rpc_layer"], "grpc+penstock")
                self.assertEqual(
                    config["cluster"][task["type"]][task["index"]],
                    f"training-{index}.training:2222")
                tasks.add((task["type"], task["index"]))
        self.assertEqual(len(tasks), sum(map(len, config["cluster"].values())))
        self.assertIn(("chief", 0), tasks)


class SlurmTest(unittest.TestCase):
    """Does not run these files, because slurm_test runs them."""

    def test_shellcheck_finds_nothing(self):
        if shutil.which("shellcheck") is None:
            self.skipTest("no shellcheck here: run tools/setup --deploy")
        self.assertEqual(len(SLURM), 2)
        self.assertEqual(run("shellcheck", *SLURM).stdout, "")


class CheckerTest(unittest.TestCase):

    def test_a_flag_that_a_program_lacks_is_unknown(self):
        self.assertEqual(
            unknown_flags(["penstock", "ping", "x:1", "--count=1", "--port=2"]),
            {"--port"})

    def test_words_in_comments_stay_comments(self):
        self.assertEqual(without_comments("  # - {a: b}\n  # To all: not\n"),
                         "  - {a: b}\n  # To all: not\n")


if __name__ == "__main__":
    # Reports each test of unittest's classes, and the reason of each skip.
    report = os.environ.get("XML_OUTPUT_FILE")
    sys.exit(pytest.main(
        [str(pathlib.Path(__file__).resolve()), "-v", "-rs", "-p",
         "no:cacheprovider"] + ([f"--junitxml={report}"] if report else [])))
