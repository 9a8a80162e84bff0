// Runs Python code in a program, without linking this library to Python. Finds
// Python's functions by name. The functions belong to the stable ABI, or are as
// old as Python 3, so that one library fits each release.

#include "preload/package.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload/objects.h"

static const char kFile[] = "python/penstock/grpc/_run.py";

// Sets `reason` to a text, or to nothing. If a signal handler raises an
// exception, for example at Ctrl-C, sets `kind` and `raised` to the exception.
// Runs with the variables `run` (the path of _run.py) and `cygrpc`.
static const char kCode[] =
    "try:\n"
    "    import importlib.util as util\n"
    "    spec = util.spec_from_file_location('_penstock_run', run)\n"
    "    module = util.module_from_spec(spec)\n"
    "    spec.loader.exec_module(module)\n"
    "    reason = module.begin(cygrpc) or ''\n"
    "except Exception as error:\n"
    "    reason = f'{type(error).__name__}: {error}'\n"
    "except BaseException as error:\n"
    "    kind = type(error)\n"
    "    raised = error\n"
    "    reason = f'{kind.__name__} has ended its import'\n";

// The value of Py_file_input.
enum { kFileInput = 257 };

typedef struct Object Object;  // PyObject

// The functions of Python.
struct Python {
  int (*HoldsLock)(void);
  Object* (*NewDict)(void);
  Object* (*GetItem)(Object*, const char*);
  int (*SetItem)(Object*, const char*, Object*);
  Object* (*Builtins)(void);
  Object* (*NewText)(const char*);
  const char* (*Utf8)(Object*);
  Object* (*Run)(const char*, int, Object*, Object*);
  void (*Release)(Object*);
  void (*ClearError)(void);
  void (*SetError)(Object*, Object*);
  int (*RunLater)(int (*)(void*), void*);
};

// Returns 0 if the program has no Python, or hides its functions.
static int FindPython(struct Python* python) {
  const struct {
    const char* name;
    void* function;
  } wanted[] = {
      {"PyGILState_Check", &python->HoldsLock},
      {"PyDict_New", &python->NewDict},
      {"PyDict_GetItemString", &python->GetItem},
      {"PyDict_SetItemString", &python->SetItem},
      {"PyEval_GetBuiltins", &python->Builtins},
      {"PyUnicode_DecodeFSDefault", &python->NewText},
      {"PyUnicode_AsUTF8", &python->Utf8},
      {"PyRun_String", &python->Run},
      {"Py_DecRef", &python->Release},
      {"PyErr_Clear", &python->ClearError},
      {"PyErr_SetObject", &python->SetError},
      {"Py_AddPendingCall", &python->RunLater},
  };
  for (size_t i = 0; i < sizeof wanted / sizeof *wanted; ++i) {
    void* found = dlsym(RTLD_DEFAULT, wanted[i].name);
    if (found == NULL) return 0;
    memcpy(wanted[i].function, &found, sizeof found);
  }
  return 1;
}

static int SetText(const struct Python* python, Object* variables,
                   const char* name, const char* value) {
  Object* text = python->NewText(value);
  if (text == NULL) return 0;
  const int result = python->SetItem(variables, name, text);
  python->Release(text);
  return result == 0;
}

// Runs the code, and returns its reason, or null. `variables` owns the reason.
static const char* RunCode(const struct Python* python, Object* variables,
                           const char* run, const char* cygrpc) {
  if (python->SetItem(variables, "__builtins__", python->Builtins()) != 0 ||
      !SetText(python, variables, "run", run) ||
      !SetText(python, variables, "cygrpc", cygrpc)) {
    return NULL;
  }
  Object* result = python->Run(kCode, kFileInput, variables, variables);
  if (result == NULL) return NULL;
  python->Release(result);
  Object* reason = python->GetItem(variables, "reason");  // borrowed
  return reason == NULL ? NULL : python->Utf8(reason);
}

// An exception that waits to be raised. Owns the variables of the code.
struct Raised {
  struct Python python;
  Object* variables;
};

static int RaiseNow(void* argument) {
  const struct Raised raised = *(struct Raised*)argument;
  free(argument);
  raised.python.SetError(raised.python.GetItem(raised.variables, "kind"),
                         raised.python.GetItem(raised.variables, "raised"));
  raised.python.Release(raised.variables);
  return -1;
}

// Releases the variables of the code. If the code has caught an exception of a
// signal handler, makes Python raise that exception again after this library
// has returned.
static void Finish(const struct Python* python, Object* variables) {
  struct Raised* raised = NULL;
  if (python->GetItem(variables, "raised") != NULL) {
    raised = malloc(sizeof *raised);
  }
  if (raised != NULL) {
    raised->python = *python;
    raised->variables = variables;
    if (python->RunLater(RaiseNow, raised) == 0) return;
    free(raised);
  }
  python->Release(variables);
}

int UsePackage(const char* file, char* why, size_t size) {
  struct Python python;
  char run[PATH_MAX];
  if (!PathBeside(kFile, run, sizeof run) || access(run, R_OK) != 0) {
    snprintf(why, size,
             "penstock.grpc does not lie next to Penstock's library");
    return 0;
  }
  if (!FindPython(&python) || !python.HoldsLock()) {
    snprintf(why, size, "it is not loaded by Python's import");
    return 0;
  }
  Object* variables = python.NewDict();
  const char* reason =
      variables == NULL ? NULL : RunCode(&python, variables, run, file);
  snprintf(why, size, "%s",
           reason == NULL ? "Python's memory ran out" : reason);
  python.ClearError();
  const int is_used = why[0] == '\0';
  if (variables != NULL) Finish(&python, variables);
  return is_used;
}
