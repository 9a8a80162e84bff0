"""Replaces the functions of grpcio in programs that know nothing of Penstock.

The library that `penstock run` preloads runs begin() while a program's first
`import grpc` loads grpcio's extension module. penstock.grpc needs all of grpc,
so it replaces the functions at the end of that import.
"""

import datetime
import importlib.machinery
import importlib.util
import logging
import os
import sys

_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LEVELS = {"debug": logging.DEBUG, "warning": logging.WARNING,
           "error": logging.ERROR, "off": logging.CRITICAL + 1}


def begin(cygrpc):
    """Prepares the replacement. `cygrpc` is the path of the extension module.
    Returns None, or the reason why nothing will be replaced."""
    module = sys.modules.get("grpc")
    spec = getattr(module, "__spec__", None)
    # Uses a private attribute, which all releases of Python set at the end of
    # an import.
    if spec is None or not vars(spec).get("_initializing"):
        return "it is not loaded by an import of grpc"
    if os.path.dirname(os.path.dirname(cygrpc)) != os.path.dirname(spec.origin):
        return f"the program's grpc is {spec.origin}"
    try:
        reason = _load_package()
    except ImportError as error:
        first_line = str(error).split("\n", maxsplit=1)[0]
        reason = f"penstock.grpc does not load: {first_line}"
    if reason is None:
        # If the import of grpc is part of the import of penstock.grpc, waits
        # for the end of the latter, which comes later.
        ours = getattr(sys.modules.get("penstock.grpc"), "__spec__", spec)
        ours.__class__ = _Watched
    return reason


def _load_package():
    """Loads the package penstock: the one that the program would import if it
    has penstock.grpc, or the one of this file. Returns None, or the reason for
    not loading it."""
    found = importlib.util.find_spec("penstock")
    # Checks the origin, because a folder without code is found too, for
    # example in the tree of Penstock's sources.
    if found is not None and found.origin is not None:
        folder = os.path.dirname(found.origin)
        if not os.path.exists(os.path.join(folder, "grpc", "_run.py")):
            return f"the program's package penstock, {folder}, has no grpc"
    elif "penstock" not in sys.modules:
        found = importlib.util.spec_from_file_location(
            "penstock", os.path.join(_FOLDER, "__init__.py"))
        module = importlib.util.module_from_spec(found)
        sys.modules["penstock"] = module
        found.loader.exec_module(module)
    importlib.import_module("penstock._rpc")
    return None


class _Watched(importlib.machinery.ModuleSpec):
    """The specification of a module while the module is being imported.
    Notices the end of the import."""

    @property
    def _initializing(self):
        return vars(self)["_initializing"]

    @_initializing.setter
    def _initializing(self, value):
        if not value:
            self.__class__ = importlib.machinery.ModuleSpec
            if self.name in sys.modules:  # not if it failed
                _install()
        vars(self)["_initializing"] = value


def _install():
    try:
        # Installs the functions after the import of grpc, because Python adds
        # the name to the package only then.
        importlib.import_module("penstock.grpc").install()
        _write_log()
    except Exception:  # pylint: disable=broad-except
        # Logs any exception, because the program continues with grpcio.
        logging.getLogger("penstock").exception("Penstock is not used")


class _Handler(logging.Handler):
    """Writes log lines in the format of Penstock's library."""

    def emit(self, record):
        if sys.stderr is None:  # closed; print() would take standard output
            return
        now = datetime.datetime.now(datetime.timezone.utc)
        text = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        try:
            print(f"{text} {record.levelname.lower()} penstock[{os.getpid()}]: "
                  f"{record.getMessage()}", file=sys.stderr, flush=True)
        except Exception:  # pylint: disable=broad-except
            self.handleError(record)


def _write_log():
    """Writes the log of penstock.grpc to standard error, as PENSTOCK_LOG
    says."""
    level = _LEVELS.get(os.environ.get("PENSTOCK_LOG"), logging.INFO)
    logger = logging.getLogger("penstock")
    logger.addHandler(_Handler(level))
    logger.setLevel(level)
    logger.propagate = False
