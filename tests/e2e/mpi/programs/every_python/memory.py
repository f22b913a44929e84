"""Windows, files and processes of mpi4py."""
import array
import contextlib
import socket
import sys

from mpi4py import MPI

W = MPI.COMM_WORLD
ME = W.Get_rank()
OTHER = 1 - ME
I = MPI.INT


def ints(*values):
    return array.array("i", values)


def fences(window, memory):
    value, got = ints(10 + ME), ints(-1)
    window.Fence()
    window.Put([value, I], OTHER, 0)
    window.Accumulate([value, I], OTHER, 1)
    window.Fence()
    window.Get([got, I], OTHER, 0)
    window.Fence()
    assert memory[0] == 10 + OTHER == memory[1] and got == value


def starts_and_posts(window, memory):
    peer = W.Get_group().Incl([OTHER])
    for form in (0, 1):
        if ME == 0:
            window.Start(peer)
            window.Put([ints(20 + form), I], 1, 2)
            window.Complete()
        else:
            window.Post(peer)
            if form == 0:
                window.Wait()
            while form == 1 and not window.Test():
                pass
            assert memory[2] == 20 + form
    W.Barrier()


def locks(window):
    value, old, zero = ints(10 + ME), ints(-1), ints(0)
    window.Lock(OTHER)
    window.Put([zero, I], OTHER, 3)
    window.Unlock(OTHER)
    W.Barrier()
    window.Lock_all()
    window.Get_accumulate([value, I], [old, I], OTHER, 3)
    window.Flush(OTHER)
    assert old == zero
    window.Fetch_and_op([value, I], [old, I], OTHER, 3, MPI.REPLACE)
    window.Flush_all()
    window.Compare_and_swap([zero, I], [value, I], [old, I], OTHER, 3)
    window.Flush_local(OTHER)
    window.Flush_local_all()
    window.Sync()
    window.Unlock_all()


def with_requests(window):
    value, got, old = ints(10 + ME), ints(-1), ints(-1)
    window.Lock_all()
    window.Rput([value, I], OTHER, 4).Wait()
    window.Flush(OTHER)
    window.Rget([got, I], OTHER, 4).Wait()
    assert got == value
    window.Raccumulate([value, I], OTHER, 4).Wait()
    window.Flush(OTHER)
    window.Rget_accumulate([value, I], [old, I], OTHER, 4, op=MPI.NO_OP).Wait()
    assert old[0] == 2 * value[0]
    window.Unlock_all()


def names(window):
    window.Set_name("a window")
    assert window.Get_name() == "a window" and window.Get_group().Get_size() == 2
    window.Set_info(window.Get_info())
    window.Set_errhandler(MPI.ERRORS_RETURN)
    window.Get_errhandler()
    window.Call_errhandler(MPI.ERR_OTHER)
    key = MPI.Win.Create_keyval()
    window.Set_attr(key, 5)
    assert window.Get_attr(key) == 5
    window.Delete_attr(key)
    MPI.Win.Free_keyval(key)
    W.Barrier()


def windows():
    window = MPI.Win.Allocate(32, 4, comm=W)
    memory = memoryview(window.tomemory()).cast("B").cast("i")
    memory[:] = ints(*[0] * 8)
    W.Barrier()
    fences(window, memory)
    starts_and_posts(window, memory)
    locks(window)
    with_requests(window)
    names(window)
    window.Free()
    shared = MPI.Win.Allocate_shared(4, 4, comm=W)
    assert len(shared.Shared_query(OTHER)[0]) == 4
    shared.Free()
    created = MPI.Win.Create(ints(0), 4, comm=W)
    created.Free()
    dynamic = MPI.Win.Create_dynamic(comm=W)
    attached = MPI.Alloc_mem(64)
    dynamic.Attach(attached)
    W.Barrier()
    dynamic.Detach(attached)
    dynamic.Free()
    MPI.Free_mem(attached)


def own_value(file, value, write, read, *place):
    out, got = [ints(value), MPI.INT], ints(-1)
    for call, buffer in ((write, out), (read, [got, MPI.INT])):
        file.Sync()
        W.Barrier()
        if not place:
            file.Seek(4 * ME)
        result = getattr(file, call)(*place, buffer)
        if result is not None:
            result.Wait()
    assert got[0] == value


def shared_value(file, value, write, read):
    for call, number in ((write, value), (read, 0)):
        file.Sync()
        W.Barrier()
        file.Seek_shared(0)
        W.Barrier()
        result = getattr(file, call)([ints(number), MPI.INT])
        if result is not None:
            result.Wait()


def split_value(file, form, *place):
    out, got = [ints(50 + ME), MPI.INT], [ints(-1), MPI.INT]
    for call, buffer in (("Write", out), ("Read", got)):
        if form == "all":
            file.Seek(4 * ME)
        elif form == "ordered":
            file.Seek_shared(0)
        getattr(file, f"{call}_{form}_begin")(*place, buffer)
        getattr(file, f"{call}_{form}_end")(buffer)
        file.Sync()
        W.Barrier()
    assert got[0] == out[0]


def representations():
    """The library may refuse it."""
    with contextlib.suppress(MPI.Exception):
        MPI.Register_datarep("ours", lambda *_: None, lambda *_: None, lambda kind: kind.extent)


def files(folder):
    path = f"{folder}/python.bin"
    file = MPI.File.Open(W, path, MPI.MODE_CREATE | MPI.MODE_RDWR)
    for number, form in enumerate(("_at", "_at_all")):
        own_value(file, 10 * number + ME, "Write" + form, "Read" + form, 4 * ME)
        own_value(file, 10 * number + 5 + ME, "Iwrite" + form, "Iread" + form, 4 * ME)
    for number, form in enumerate(("", "_all")):
        own_value(file, 30 + 10 * number + ME, "Write" + form, "Read" + form)
        own_value(file, 35 + 10 * number + ME, "Iwrite" + form, "Iread" + form)
    for write, read in (("Write", "Read"), ("Iwrite", "Iread")):
        shared_value(file, 60 + ME, write + "_shared", read + "_shared")
    shared_value(file, 70 + ME, "Write_ordered", "Read_ordered")
    split_value(file, "at_all", 4 * ME)
    split_value(file, "all")
    split_value(file, "ordered")
    file.Get_position()
    assert file.Get_position_shared() == 8
    assert file.Get_amode() == MPI.MODE_CREATE | MPI.MODE_RDWR
    assert file.Get_group().Get_size() == 2
    file.Set_info(file.Get_info())
    file.Set_size(40)
    file.Preallocate(48)
    W.Barrier()
    assert file.Get_size() == 48
    file.Set_atomicity(False)
    assert not file.Get_atomicity() and file.Get_type_extent(MPI.INT) == 4
    file.Set_view(8, MPI.INT)
    assert file.Get_view()[0] == 8 and file.Get_byte_offset(3) == 20
    file.Set_errhandler(MPI.ERRORS_RETURN)
    file.Get_errhandler()
    file.Call_errhandler(MPI.ERR_FILE)
    file.Close()
    W.Barrier()
    if ME == 0:
        MPI.File.Delete(path)


def joined():
    """By a connected pair of sockets, one end on each rank."""
    if ME == 0:
        with socket.create_server(("127.0.0.1", 0)) as server:
            W.send(server.getsockname(), 1)
            end, _ = server.accept()
    else:
        end = socket.create_connection(W.recv(source=0))
    between = MPI.Comm.Join(end.fileno())
    assert between.sendrecv(ME, 0, source=0) == OTHER
    between.Disconnect()
    end.close()


def processes():
    joined()
    if ME == 0:
        port = MPI.Open_port()
        MPI.Publish_name("aon-python", port)
        W.Barrier()
        between = MPI.COMM_SELF.Accept(port)
    else:
        W.Barrier()
        between = MPI.COMM_SELF.Connect(MPI.Lookup_name("aon-python"))
    assert between.sendrecv(ME, 0, source=0) == OTHER
    between.Disconnect()
    if ME == 1:
        return
    MPI.Unpublish_name("aon-python", port)
    MPI.Close_port(port)
    children = MPI.COMM_SELF.Spawn(sys.executable, [sys.argv[0], "child"], 1)
    assert children.Get_remote_size() == 1
    children.Disconnect()
    children = MPI.COMM_SELF.Spawn_multiple([sys.executable], [[sys.argv[0], "child"]], [1])
    children.Disconnect()


def all_of_them(folder):
    windows()
    files(folder)
    representations()
    processes()
