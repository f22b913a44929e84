"""Messages, requests and collectives of mpi4py, on two ranks."""
import array

from mpi4py import MPI

W = MPI.COMM_WORLD
ME = W.Get_rank()
OTHER = 1 - ME


def ints(*values):
    return array.array("i", values)


def sends():
    MPI.Attach_buffer(MPI.Alloc_mem(1 << 16))
    out, got = ints(11, 12), ints(0, 0)
    if ME == 0:
        for tag, send in enumerate((W.Send, W.Ssend, W.Bsend)):
            send([out, MPI.INT], 1, tag)
        W.Send([out, MPI.INT], MPI.PROC_NULL)
    else:
        for tag in range(3):
            status = MPI.Status()
            W.Recv([got, MPI.INT], 0, tag, status)
            assert got == out and status.Get_count(MPI.INT) == 2 and status.tag == tag
    request = W.Irecv([got, MPI.INT], 0, 3) if ME == 1 else None
    W.Barrier()
    if ME == 0:
        W.Rsend([out, MPI.INT], 1, 3)
    else:
        request.Wait()
    request = W.Irecv([got, MPI.INT], 0, 4) if ME == 1 else None
    W.Barrier()
    if ME == 0:
        forms = (W.Irsend, W.Isend, W.Issend, W.Ibsend)
        MPI.Request.Waitall([f([out, MPI.INT], 1, 4 + i) for i, f in enumerate(forms)])
    else:
        request.Wait()
        for tag in (5, 6, 7):
            W.Recv([got, MPI.INT], 0, tag)
    W.Sendrecv([out, MPI.INT], OTHER, 8, [got, MPI.INT], OTHER, 8)
    both = ints(ME)
    W.Sendrecv_replace([both, MPI.INT], OTHER, 9, OTHER, 9)
    assert both[0] == OTHER
    assert W.sendrecv({"from": ME}, OTHER, 10, source=OTHER, recvtag=10) == {"from": OTHER}


def probes():
    got, status = ints(0), MPI.Status()
    if ME == 0:
        for tag in range(4):
            W.Send([ints(tag), MPI.INT], 1, tag)
        return
    W.Probe(0, 0, status)
    W.Recv([got, MPI.INT], 0, 0)
    while not W.Iprobe(0, 1):
        pass
    W.Recv([got, MPI.INT], 0, 1)
    W.Mprobe(0, 2).Recv([got, MPI.INT])
    message = None
    while message is None:
        message = W.Improbe(0, 3)
    message.Irecv([got, MPI.INT]).Wait()
    assert got[0] == 3 and status.source == 0


def persistent():
    out, got = ints(7), ints(0)
    if ME == 0:
        forms = (W.Send_init, W.Ssend_init, W.Bsend_init, W.Rsend_init)
        requests = [form([out, MPI.INT], 1, i) for i, form in enumerate(forms)]
    else:
        requests = [W.Recv_init([got, MPI.INT], 0, 3)]
        requests[0].Start()
    W.Barrier()
    if ME == 0:
        MPI.Prequest.Startall(requests)
    MPI.Request.Waitall(requests)
    for tag in range(3 if ME == 1 else 0):
        W.Recv([got, MPI.INT], 0, tag)
        assert got[0] == 7
    for request in requests:
        request.Free()
    MPI.Detach_buffer()


def begin():
    got = [ints(-1) for _ in range(3)]
    requests = [W.Irecv([g, MPI.INT], OTHER, i) for i, g in enumerate(got)]
    for i in range(3):
        W.Send([ints(10 * ME + i), MPI.INT], OTHER, i)
    return got, requests


def finished(got):
    return [g[0] for g in got] == [10 * OTHER + i for i in range(3)]


def waits():
    got, requests = begin()
    for request in requests:
        request.Wait()
    assert finished(got)
    got, requests = begin()
    assert sorted(MPI.Request.Waitany(requests) for _ in range(3)) == [0, 1, 2]
    got, requests = begin()
    done = []
    while len(done) < 3:
        done += MPI.Request.Waitsome(requests)
    assert finished(got)
    got, requests = begin()
    while not all(request.Test() for request in requests):
        pass
    got, requests = begin()
    while not MPI.Request.Testall(requests):
        pass
    assert finished(got)
    got, requests = begin()
    done = 0
    while done < 3:
        done += MPI.Request.Testany(requests)[1]
    got, requests = begin()
    done = []
    while len(done) < 3:
        done += MPI.Request.Testsome(requests) or []
    got, requests = begin()
    while not requests[0].Get_status():
        pass
    MPI.Request.Waitall(requests)
    request = W.Irecv([ints(0), MPI.INT], OTHER, 99)
    status = MPI.Status()
    request.Cancel()
    request.Wait(status)
    assert status.Is_cancelled()
    status.Set_elements(MPI.INT, 6)
    status.Set_cancelled(False)
    assert status.Get_elements(MPI.INT) == 6


def own_request():
    seen = []
    request = MPI.Grequest.Start(
        lambda status: seen.append("query"), lambda: seen.append("free"), lambda done: None
    )
    assert not request.Test()
    request.Complete()
    request.Wait()
    assert seen == ["query", "free"]


def blocking_and_not(comm, name, *arguments):
    getattr(comm, name)(*arguments)
    getattr(comm, "I" + name.lower())(*arguments).Wait()


def collectives():
    out, got, last = ints(10 * ME, 10 * ME + 1), ints(-1, -1, -1), ints(-1)
    one, two = [out, 1, MPI.INT], [got, 1, MPI.INT]
    by_rank = [got, ([1, 1], [0, 1]), MPI.INT]
    parts = [out, ([1, 1], [0, 1]), MPI.INT]
    typed_out = [out, ([1, 1], [0, 4]), [MPI.INT, MPI.INT]]
    typed_got = [got, ([1, 1], [0, 4]), [MPI.INT, MPI.INT]]
    W.Barrier()
    W.Ibarrier().Wait()
    blocking_and_not(W, "Bcast", [ints(1), MPI.INT], 1)
    for name, *arguments in (
        ("Scatter", [out, 1, MPI.INT], two, 0), ("Scatterv", parts, two, 0),
        ("Gather", one, two, 0), ("Gatherv", one, by_rank, 0), ("Allgather", one, two),
        ("Allgatherv", one, by_rank), ("Alltoall", one, two), ("Alltoallv", parts, by_rank),
        ("Alltoallw", typed_out, typed_got), ("Reduce", one, two, MPI.SUM, 0),
        ("Allreduce", one, two, MPI.SUM), ("Reduce_scatter_block", [out, MPI.INT], [last, MPI.INT]),
        ("Reduce_scatter", [out, MPI.INT], [last, MPI.INT], [1, 1]), ("Scan", one, two),
        ("Exscan", one, two),
    ):  # fmt: skip
        blocking_and_not(W, name, *arguments)
    around = W.Create_dist_graph_adjacent([ME, OTHER], [ME, OTHER])
    for name, *arguments in (
        ("allgather", one, two), ("allgatherv", one, by_rank), ("alltoall", one, two),
        ("alltoallv", parts, by_rank), ("alltoallw", typed_out, typed_got),
    ):  # fmt: skip
        getattr(around, "Neighbor_" + name)(*arguments)
        getattr(around, "Ineighbor_" + name)(*arguments).Wait()
    assert got[:2] == ints(10 * ME, 10 * OTHER + 1)
    around.Free()
    assert W.allreduce(ME + 1) == 3 and W.bcast([1] if ME == 0 else None) == [1]
    W.Allreduce(MPI.IN_PLACE, [out, MPI.INT], MPI.MAX)
    assert out == ints(10, 11)


def all_of_them():
    sends()
    probes()
    persistent()
    waits()
    own_request()
    collectives()
