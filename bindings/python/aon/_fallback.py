"""What _aon does, by ctypes, for a Python that cannot import the extension. About 1 us per call."""
import ctypes


class _Functions(ctypes.Structure):
    """struct aon_annotations of aon/annotate.h."""

    _fields_ = [
        ("abi", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("region", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p)),
        ("region_begin", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("region_end", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("step_begin", ctypes.CFUNCTYPE(None, ctypes.c_int64)),
        ("step_end", ctypes.CFUNCTYPE(None)),
        ("mark", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("mark_integer", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)),
        ("mark_real", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_double)),
        ("counter", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)),
        ("counter_set", ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_double)),
    ]


class _GpuFunctions(ctypes.Structure):
    """struct aon_gpu_functions of aon/gpu.h."""

    _fields_ = [
        ("annotations", _Functions),
        ("pause", ctypes.CFUNCTYPE(ctypes.c_int)),
        ("resume", ctypes.CFUNCTYPE(ctypes.c_int)),
    ]


_ABI = 1


def _find():
    """The functions of the libaon.so in this process, or None."""
    try:
        table = ctypes.CDLL(None).aon_annotations_v1
    except (AttributeError, OSError):
        return None
    table.restype = ctypes.POINTER(_Functions)
    functions = table().contents
    is_ours = functions.abi == _ABI and functions.size >= ctypes.sizeof(_Functions)
    return functions if is_ours else None


_functions = _find()
_decorator = None


def is_present():
    return _functions is not None


def set_decorator(decorator):
    global _decorator
    _decorator = decorator


def _encoded(name):
    if not isinstance(name, str):
        raise TypeError("a name is a str")
    return name.encode(errors="replace")


class Region:
    """A region of the calling thread; enter it as often as you like."""

    def __init__(self, name):
        self.name = name
        encoded = _encoded(name)
        self._handle = _functions.region(encoded) if _functions else None

    def __enter__(self):
        if self._handle:
            _functions.region_begin(self._handle)
        return self

    def __exit__(self, *_):
        if self._handle:
            _functions.region_end(self._handle)
        return False

    def __call__(self, function):
        return _decorator(self, function)


_MAX_KEPT_REGIONS = 8192  # a program may make up a name at each iteration
_regions = {}


def region(name):
    """The region of this name; of a function: the function in a region of its name."""
    found = _regions.get(name)
    if found is not None:
        return found
    if callable(name):
        return _decorator(region(name.__qualname__), name)
    if len(_regions) >= _MAX_KEPT_REGIONS:
        return Region(name)
    return _regions.setdefault(name, Region(name))


class Step:
    """One iteration."""

    def __init__(self, number):
        self.number = int(number)

    def __enter__(self):
        if _functions:
            _functions.step_begin(self.number)
        return self

    def __exit__(self, *_):
        if _functions:
            _functions.step_end()
        return False


class Counter:
    """A value over time."""

    def __init__(self, name, unit):
        encoded = _encoded(name), _encoded(unit)
        self._handle = _functions.counter(*encoded) if _functions else None

    def set(self, value):
        value = float(value)
        if self._handle:
            _functions.counter_set(self._handle, value)


def _real(value):
    """As a real number, infinite where that does not hold an integer."""
    try:
        return float(value)
    except OverflowError:
        return float("inf" if value > 0 else "-inf")


def mark(name, value):
    encoded = _encoded(name)
    if not _functions:
        return
    handle = _functions.region(encoded)
    if value is None:
        _functions.mark(handle)
    elif isinstance(value, int) and -(2**63) <= value < 2**63:
        _functions.mark_integer(handle, value)
    else:
        _functions.mark_real(handle, _real(value))


def _gpu_functions():
    """None without AON, or with one that has none."""
    if not _functions or _functions.size < ctypes.sizeof(_GpuFunctions):
        return None
    return ctypes.cast(ctypes.pointer(_functions), ctypes.POINTER(_GpuFunctions)).contents


def gpu_pause():
    functions = _gpu_functions()
    return functions is not None and functions.pause() != 0


def gpu_resume():
    functions = _gpu_functions()
    return functions is not None and functions.resume() != 0
