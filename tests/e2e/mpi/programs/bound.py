#!/usr/bin/python3
"""Two ranks that call MPI through the binding of make_binding.py: `bound.py BINDING FOLDER`. Each
checks what the calls do, and says in FOLDER/said-RANK what it did, a line for each call:

    NAME                             any other call
    NAME PEER TAG BYTES              a message
    NAME SENT RECEIVED ROOT          a collective, in bytes to and from all members, itself too
    NAME TARGET BYTES BYTES_BACK     a one-sided transfer
    NAME ASKED MOVED OFFSET          a read or write
    NAME failed                      MPI gave an error
    done PEER TAG BYTES              a request is complete, in the call of the next line; so is one
    done SENT RECEIVED ROOT          of a collective
"""
import ctypes
import pathlib
import sys


class Binding:
    """MPI_X as self.X(..., say=facts); MPI's constants as self.value("MPI_X")."""

    HANDLES = ("MPI_COMM_", "MPI_INT", "MPI_BYTE", "MPI_DOUBLE", "MPI_SUM", "MPI_MAX", "MPI_OP_",
               "MPI_REQUEST_", "MPI_INFO_", "MPI_ERRORS_", "MPI_FILE_", "MPI_WIN_")  # fmt: skip
    POINTERS = ("MPI_IN_PLACE", "MPI_STATUS_IGNORE", "MPI_STATUSES_IGNORE")

    def __init__(self, path):
        self.library = ctypes.CDLL(path)  # RTLD_LOCAL
        is_wide = self.library.py_handle_bytes() == 8
        self.Handle = ctypes.c_void_p if is_wide else ctypes.c_int
        self.said = []

    def value(self, name):
        function = getattr(self.library, "py_value_" + name)
        if name == "MPI_COMM_TYPE_SHARED" or not name.startswith(self.HANDLES + self.POINTERS):
            return function()
        kind = ctypes.c_void_p if name in self.POINTERS else self.Handle
        function.restype = kind
        return kind(function())

    def status(self):
        return (ctypes.c_char * self.library.py_status_bytes())()

    def code_of(self, name, *arguments):
        """What MPI_name returns."""
        return getattr(self.library, "py_MPI_" + name)(*arguments)

    def __getattr__(self, name):
        def call(*arguments, say=(), done=()):
            for facts in done:
                self.said.append(("done", *facts))
            code = self.code_of(name, *arguments)
            self.said.append((f"MPI_{name}", *(say if code == 0 else ("failed",))))
            return code

        return call


M = Binding(sys.argv[1])
W, INT, NULL = M.value("MPI_COMM_WORLD"), M.value("MPI_INT"), M.value("MPI_INFO_NULL")
IGNORE, IGNORE_ALL = M.value("MPI_STATUS_IGNORE"), M.value("MPI_STATUSES_IGNORE")
IN_PLACE, SUM = M.value("MPI_IN_PLACE"), M.value("MPI_SUM")
ANY_SOURCE, ANY_TAG = M.value("MPI_ANY_SOURCE"), M.value("MPI_ANY_TAG")
PROC_NULL, REQUEST_NULL = M.value("MPI_PROC_NULL"), M.value("MPI_REQUEST_NULL")
NO_PEER = -2  # as records have it
ref = ctypes.byref
M.Init(None, None)
_rank = ctypes.c_int()
M.Comm_rank(W, ref(_rank))
ME = _rank.value
OTHER = 1 - ME


def ints(*values):
    return (ctypes.c_int * len(values))(*values)


def aint(value):
    return ctypes.c_ssize_t(value)


def check(codes, expected=0):
    assert codes == expected, (codes, expected, M.said[-1])


def messages():
    out, got, status = ints(11, 12), ints(0, 0), M.status()
    if ME == 0:
        check(M.Send(out, 2, INT, 1, 1, W, say=(1, 1, 8)))
        check(M.Ssend(out, 1, INT, 1, 2, W, say=(1, 2, 4)))
        check(M.Send(None, 0, INT, 1, 3, W, say=(1, 3, 0)))
        check(M.Send(out, 2, INT, PROC_NULL, 4, W, say=(NO_PEER, 4, 0)))
    else:
        check(M.Recv(got, 2, INT, ANY_SOURCE, ANY_TAG, W, status, say=(0, 1, 8)))
        assert list(got) == [11, 12]
        assert (M.library.py_source(status), M.library.py_tag(status)) == (0, 1)
        count = ctypes.c_int()
        check(M.Get_count(status, INT, ref(count)))
        assert count.value == 2
        check(M.Probe(0, 2, W, status))
        check(M.Recv(got, 2, INT, 0, 2, W, IGNORE, say=(0, 2, 4)))
        check(M.Recv(None, 0, INT, 0, 3, W, IGNORE, say=(0, 3, 0)))
        check(M.Recv(got, 2, INT, PROC_NULL, ANY_TAG, W, IGNORE, say=(NO_PEER, -1, 0)))
    mine = ints(ME)
    check(M.Sendrecv_replace(mine, 1, INT, OTHER, 5, OTHER, 5, W, IGNORE, say=(OTHER, 5, 4)))
    assert mine[0] == OTHER


def requests():
    out, got = ints(21, 22, 23), ints(0, 0, 0)
    pair = (M.Handle * 2)()

    def one(array, index):
        return ctypes.byref(array, index * ctypes.sizeof(M.Handle))

    check(M.Irecv(got, 3, INT, OTHER, 6, W, one(pair, 0), say=(OTHER, 6, 0)))
    check(M.Isend(out, 3, INT, OTHER, 6, W, one(pair, 1), say=(OTHER, 6, 12)))
    check(M.Waitall(2, pair, IGNORE_ALL, done=[(OTHER, 6, 12), (OTHER, 6, 12)]))
    assert list(got) == [21, 22, 23]
    assert pair[0] == REQUEST_NULL.value == pair[1]
    request, flag, index = M.Handle(), ctypes.c_int(), ctypes.c_int()
    check(M.Irecv(got, 1, INT, OTHER, 7, W, ref(request), say=(OTHER, 7, 0)))
    check(M.Send(out, 1, INT, OTHER, 7, W, say=(OTHER, 7, 4)))
    M.said.append(("done", OTHER, 7, 4))
    while not flag.value:
        check(M.Test(ref(request), ref(flag), IGNORE))
    check(M.Waitany(1, ref(request), ref(index), IGNORE))  # null by now
    assert index.value == M.value("MPI_UNDEFINED")
    check(M.Send_init(out, 2, INT, OTHER, 8, W, ref(request)))
    for _ in range(2):
        check(M.Start(ref(request), say=(OTHER, 8, 8)))
        check(M.Recv(got, 2, INT, OTHER, 8, W, IGNORE, say=(OTHER, 8, 8)))
        check(M.Wait(ref(request), IGNORE, done=[(OTHER, 8, 8)]))
    check(M.Request_free(ref(request)))


def collectives():
    out, got = ints(ME + 1, ME + 1), ints(0, 0)
    check(M.Barrier(W, say=(0, 0, -1)))
    check(M.Bcast(out, 1, INT, 1, W, say=(8 * ME, 4, 1)))
    assert out[0] == 2
    check(M.Allgather(ints(ME), 1, INT, got, 1, INT, W, say=(8, 8, -1)))
    assert list(got) == [0, 1]
    check(M.Allreduce(IN_PLACE, out, 2, INT, SUM, W, say=(8, 8, -1)))  # from the other alone
    assert list(out) == [4, 3]
    check(M.Reduce(ints(5), got, 1, INT, SUM, 0, W, say=(4, 8 * OTHER, 0)))
    assert ME == 1 or got[0] == 10
    request = M.Handle()
    check(M.Ialltoall(ints(ME, ME), 1, INT, got, 1, INT, W, ref(request), say=(8, 8, -1)))
    check(M.Wait(ref(request), IGNORE, done=[(8, 8, -1)]))


def communicators():
    copy, half, size = M.Handle(), M.Handle(), ctypes.c_int()
    check(M.Comm_dup(W, ref(copy)))
    check(M.Comm_set_name(copy, b"of Python"))
    check(M.Allreduce(ints(1), ints(0), 1, INT, M.value("MPI_MAX"), copy, say=(8, 8, -1)))
    check(M.Comm_split(copy, ME, 0, ref(half)))
    check(M.Comm_size(half, ref(size)))
    assert size.value == 1
    check(M.Comm_free(ref(half)))
    check(M.Comm_free(ref(copy)))
    assert copy.value == M.value("MPI_COMM_NULL").value


def windows():
    memory, got, window = ints(100 + ME, 0), ints(0), M.Handle()
    check(M.Win_create(memory, aint(8), 4, NULL, W, ref(window)))
    check(M.Win_fence(0, window))
    check(M.Put(ints(ME + 7), 1, INT, OTHER, aint(1), 1, INT, window, say=(OTHER, 4, 0)))
    check(M.Get(got, 1, INT, OTHER, aint(0), 1, INT, window, say=(OTHER, 0, 4)))
    check(M.Win_fence(0, window))
    assert got[0] == 100 + OTHER and memory[1] == OTHER + 7
    check(M.Win_lock(M.value("MPI_LOCK_EXCLUSIVE"), OTHER, 0, window))
    check(M.Accumulate(ints(1), 1, INT, OTHER, aint(0), 1, INT, SUM, window, say=(OTHER, 4, 0)))
    check(M.Win_unlock(OTHER, window))
    check(M.Barrier(W, say=(0, 0, -1)))
    check(M.Win_free(ref(window)))


def files(folder):
    name, file = str(folder / "data").encode(), M.Handle()
    mode = M.value("MPI_MODE_CREATE") | M.value("MPI_MODE_RDWR")
    out, got, place = ints(ME, 31), ints(0, 0), 8 * ME
    offset = ctypes.c_longlong(place)
    check(M.File_open(W, name, mode, NULL, ref(file)))
    check(M.File_set_size(file, ctypes.c_longlong(0)))
    check(M.File_write_at_all(file, offset, out, 2, INT, IGNORE, say=(8, 8, place)))
    check(M.File_sync(file))
    check(M.File_read_at(file, offset, got, 2, INT, IGNORE, say=(8, 8, place)))
    assert list(got) == [ME, 31]
    check(M.File_close(ref(file)))


def operations():
    """The program's own, called by MPI within a call; what it calls itself is not recorded."""
    calls = []
    kind = ctypes.CFUNCTYPE(None, *[ctypes.POINTER(ctypes.c_int)] * 3, ctypes.c_void_p)

    @kind
    def weigh(left, right, count, _):
        size = ctypes.c_int()
        M.code_of("Comm_size", W, ref(size))
        M.code_of("Type_size", INT, ref(size))
        calls.append(count[0])
        for index in range(count[0]):
            right[index] += 100 * left[index]

    operation, got = M.Handle(), ints(1)
    check(M.Op_create(weigh, 0, ref(operation)))
    check(M.Reduce_local(ints(ME + 1), got, 1, INT, operation))
    assert got[0] == 1 + 100 * (ME + 1) and calls == [1]
    check(M.Allreduce(ints(ME + 1), got, 1, INT, operation, W, say=(8, 8, -1)))
    assert got[0] == 102
    check(M.Op_free(ref(operation)))


def errors():
    """A handler of the program's own hears of each error once, and MPI's code comes back."""
    heard = []

    def class_of(code, ask=M.Error_class):
        result = ctypes.c_int()
        ask(code, ref(result))
        return result.value

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
    def hear(_, code):
        heard.append(class_of(code[0], lambda *which: M.code_of("Error_class", *which)))

    handler, before = M.Handle(), M.Handle()
    check(M.Comm_get_errhandler(W, ref(before)))
    check(M.Comm_create_errhandler(hear, ref(handler)))
    check(M.Comm_set_errhandler(W, handler))
    wrong_rank = M.value("MPI_ERR_RANK")
    assert class_of(M.Send(ints(1), 1, INT, 77, 0, W)) == wrong_rank and heard == [wrong_rank]
    check(M.Comm_set_errhandler(W, M.value("MPI_ERRORS_RETURN")))
    assert class_of(M.Send(ints(1), 1, INT, 77, 0, W)) == wrong_rank and len(heard) == 1
    check(M.Comm_set_errhandler(W, before))
    check(M.Errhandler_free(ref(handler)))
    check(M.Errhandler_free(ref(before)))


def main():
    folder = pathlib.Path(sys.argv[2])
    messages()
    requests()
    collectives()
    communicators()
    windows()
    files(folder)
    operations()
    errors()
    M.Finalize()
    lines = [" ".join(map(str, words)) + "\n" for words in M.said]
    (folder / f"said-{ME}").write_text("".join(lines))
    print("ok")


main()
