// The extension _aon of the Python module aon, in the limited API: one file for every Python from
// 3.6 on. It finds libaon.so as every annotated library does (aon/annotate.h).
// Cost: `with aon.region("halo")` looks a str up in a dictionary and makes no object.
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <aon/annotate.h>
#include <aon/gpu.h>
#include <math.h>

// As many names as libaon.so has room for: a program may make up a name at each iteration.
enum { kMaxKeptRegions = 8192 };

static PyObject* g_regions;    // dict: name -> Region
static PyObject* g_decorator;  // Python function (region, function)
static PyTypeObject* g_region_type;

typedef struct {
  PyObject_HEAD aon_region_t handle;
} Region;

typedef struct {
  PyObject_HEAD long long number;
} Step;

typedef struct {
  PyObject_HEAD aon_counter_t handle;
} Counter;

static void free_object(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  const freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF((PyObject*)type);
}

/// UTF-8 of a str as a bytes object, characters that have none replaced. Null with an exception.
static PyObject* utf8_of(PyObject* name) {
  if (!PyUnicode_Check(name)) {
    PyErr_SetString(PyExc_TypeError, "a name is a str");
    return NULL;
  }
  return PyUnicode_AsEncodedString(name, "utf-8", "replace");
}

/// The handle of a name. False with an exception.
static int find_region(PyObject* name, aon_region_t* handle) {
  PyObject* text = utf8_of(name);
  if (text == NULL) return 0;
  *handle = aon_region(PyBytes_AsString(text));
  Py_DECREF(text);
  return 1;
}

static PyObject* region_enter(PyObject* self, PyObject* unused) {
  (void)unused;
  aon_region_begin(((Region*)self)->handle);
  Py_INCREF(self);
  return self;
}

static PyObject* region_exit(PyObject* self, PyObject* unused) {
  (void)unused;
  aon_region_end(((Region*)self)->handle);
  Py_RETURN_FALSE;
}

static PyObject* region_call(PyObject* self, PyObject* arguments, PyObject* keywords) {
  PyObject* function;
  (void)keywords;
  if (!PyArg_ParseTuple(arguments, "O", &function)) return NULL;
  return PyObject_CallFunctionObjArgs(g_decorator, self, function, NULL);
}

static PyObject* make_region(PyObject* name) {
  aon_region_t handle = NULL;
  if (!find_region(name, &handle)) return NULL;
  const allocfunc allocate = (allocfunc)PyType_GetSlot(g_region_type, Py_tp_alloc);
  PyObject* made = allocate(g_region_type, 0);
  if (made == NULL) return NULL;
  ((Region*)made)->handle = handle;
  if (PyDict_Size(g_regions) < kMaxKeptRegions && PyDict_SetItem(g_regions, name, made) != 0) {
    Py_DECREF(made);
    return NULL;
  }
  return made;
}

/// region(name): the region; of the first names the same object each time. region(function): a
/// decorator.
static PyObject* region(PyObject* module, PyObject* name) {
  PyObject* found;
  (void)module;
  if (PyUnicode_Check(name)) {
    found = PyDict_GetItem(g_regions, name);
    if (found == NULL) return make_region(name);
    Py_INCREF(found);
    return found;
  }
  if (!PyCallable_Check(name)) {
    PyErr_SetString(PyExc_TypeError, "a region has a name (str)");
    return NULL;
  }
  PyObject* own_name = PyObject_GetAttrString(name, "__qualname__");
  PyObject* own_region = own_name != NULL ? region(module, own_name) : NULL;
  Py_XDECREF(own_name);
  if (own_region == NULL) return NULL;
  PyObject* decorated = PyObject_CallFunctionObjArgs(g_decorator, own_region, name, NULL);
  Py_DECREF(own_region);
  return decorated;
}

static int step_init(PyObject* self, PyObject* arguments, PyObject* keywords) {
  (void)keywords;
  return PyArg_ParseTuple(arguments, "L", &((Step*)self)->number) ? 0 : -1;
}

static PyObject* step_enter(PyObject* self, PyObject* unused) {
  (void)unused;
  aon_step_begin((int64_t)((Step*)self)->number);
  Py_INCREF(self);
  return self;
}

static PyObject* step_exit(PyObject* self, PyObject* unused) {
  (void)self;
  (void)unused;
  aon_step_end();
  Py_RETURN_FALSE;
}

static int counter_init(PyObject* self, PyObject* arguments, PyObject* keywords) {
  PyObject* name;
  PyObject* unit;
  (void)keywords;
  if (!PyArg_ParseTuple(arguments, "OO", &name, &unit)) return -1;
  PyObject* name_text = utf8_of(name);
  PyObject* unit_text = name_text != NULL ? utf8_of(unit) : NULL;
  if (unit_text != NULL) {
    ((Counter*)self)->handle =
        aon_counter(PyBytes_AsString(name_text), PyBytes_AsString(unit_text));
  }
  Py_XDECREF(name_text);
  if (unit_text == NULL) return -1;
  Py_DECREF(unit_text);
  return 0;
}

static PyObject* counter_set(PyObject* self, PyObject* value) {
  const double number = PyFloat_AsDouble(value);
  if (number == -1.0 && PyErr_Occurred() != NULL) return NULL;
  aon_counter_set(((Counter*)self)->handle, number);
  Py_RETURN_NONE;
}

/// A mark with a value: an integer where 64 bits hold it, else a real number, infinite where that
/// holds it no more. False with an exception.
static int put_mark(aon_region_t name, PyObject* value) {
  int beyond = 0;
  if (PyLong_Check(value)) {
    const long long number = PyLong_AsLongLongAndOverflow(value, &beyond);
    if (number == -1 && PyErr_Occurred() != NULL) return 0;
    if (beyond == 0) {
      aon_mark_integer(name, (int64_t)number);
      return 1;
    }
  }
  double number = PyFloat_AsDouble(value);
  if (number == -1.0 && PyErr_Occurred() != NULL) {
    if (beyond == 0 || !PyErr_ExceptionMatches(PyExc_OverflowError)) return 0;
    PyErr_Clear();
    number = beyond > 0 ? HUGE_VAL : -HUGE_VAL;
  }
  aon_mark_real(name, number);
  return 1;
}

static PyObject* mark(PyObject* module, PyObject* arguments) {
  PyObject* name;
  PyObject* value;
  aon_region_t handle = NULL;
  (void)module;
  if (!PyArg_ParseTuple(arguments, "OO", &name, &value) || !find_region(name, &handle)) return NULL;
  if (value == Py_None) {
    aon_mark(handle);
  } else if (!put_mark(handle, value)) {
    return NULL;
  }
  Py_RETURN_NONE;
}

static PyObject* set_decorator(PyObject* module, PyObject* decorator) {
  (void)module;
  Py_INCREF(decorator);
  Py_XDECREF(g_decorator);
  g_decorator = decorator;
  Py_RETURN_NONE;
}

static PyObject* is_present(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  return PyBool_FromLong(aon_is_present());
}

/// Other threads of Python run while AON waits for CUPTI.
static PyObject* ask_gpu(int (*function)(void)) {
  int is_done;
  Py_BEGIN_ALLOW_THREADS;
  is_done = function();
  Py_END_ALLOW_THREADS;
  return PyBool_FromLong(is_done);
}

static PyObject* gpu_pause(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  return ask_gpu(aon_gpu_pause);
}

static PyObject* gpu_resume(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  return ask_gpu(aon_gpu_resume);
}

static PyMethodDef g_region_methods[] = {{"__enter__", region_enter, METH_NOARGS, NULL},
                                         {"__exit__", region_exit, METH_VARARGS, NULL},
                                         {NULL, NULL, 0, NULL}};
static PyMethodDef g_step_methods[] = {{"__enter__", step_enter, METH_NOARGS, NULL},
                                       {"__exit__", step_exit, METH_VARARGS, NULL},
                                       {NULL, NULL, 0, NULL}};
static PyMethodDef g_counter_methods[] = {{"set", counter_set, METH_O, NULL},
                                          {NULL, NULL, 0, NULL}};
static PyMethodDef g_functions[] = {{"region", region, METH_O, NULL},
                                    {"mark", mark, METH_VARARGS, NULL},
                                    {"set_decorator", set_decorator, METH_O, NULL},
                                    {"is_present", is_present, METH_NOARGS, NULL},
                                    {"gpu_pause", gpu_pause, METH_NOARGS, NULL},
                                    {"gpu_resume", gpu_resume, METH_NOARGS, NULL},
                                    {NULL, NULL, 0, NULL}};

static PyType_Slot g_region_slots[] = {{Py_tp_dealloc, free_object},
                                       {Py_tp_call, region_call},
                                       {Py_tp_methods, g_region_methods},
                                       {Py_tp_doc, (void*)"A region of the calling thread."},
                                       {0, NULL}};
static PyType_Slot g_step_slots[] = {{Py_tp_dealloc, free_object},
                                     {Py_tp_init, step_init},
                                     {Py_tp_methods, g_step_methods},
                                     {Py_tp_doc, (void*)"One iteration."},
                                     {0, NULL}};
static PyType_Slot g_counter_slots[] = {{Py_tp_dealloc, free_object},
                                        {Py_tp_init, counter_init},
                                        {Py_tp_methods, g_counter_methods},
                                        {Py_tp_doc, (void*)"A value over time."},
                                        {0, NULL}};
static PyType_Spec g_region_spec = {"aon.Region", sizeof(Region), 0, Py_TPFLAGS_DEFAULT,
                                    g_region_slots};
static PyType_Spec g_step_spec = {"aon.Step", sizeof(Step), 0, Py_TPFLAGS_DEFAULT, g_step_slots};
static PyType_Spec g_counter_spec = {"aon.Counter", sizeof(Counter), 0, Py_TPFLAGS_DEFAULT,
                                     g_counter_slots};

static struct PyModuleDef g_module = {
    PyModuleDef_HEAD_INIT, "_aon", NULL, -1, g_functions, NULL, NULL, NULL, NULL};

static int add_type(PyObject* module, const char* name, PyType_Spec* spec) {
  PyObject* type = PyType_FromSpec(spec);
  return type != NULL && PyModule_AddObject(module, name, type) == 0;
}

// NOLINTNEXTLINE(readability-identifier-naming): Python's name
PyMODINIT_FUNC PyInit__aon(void) {
  PyObject* module = PyModule_Create(&g_module);
  if (module == NULL) return NULL;
  g_regions = PyDict_New();
  g_region_type = (PyTypeObject*)PyType_FromSpec(&g_region_spec);
  if (g_regions == NULL || g_region_type == NULL || !add_type(module, "Step", &g_step_spec) ||
      !add_type(module, "Counter", &g_counter_spec)) {
    Py_DECREF(module);
    return NULL;
  }
  return module;
}
