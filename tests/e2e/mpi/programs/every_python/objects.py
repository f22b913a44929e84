"""Communicators, groups, datatypes, attributes, operations, infos and errors of mpi4py."""
import array

from mpi4py import MPI

W = MPI.COMM_WORLD
ME = W.Get_rank()
OTHER = 1 - ME


def use_and_free(comm, size):
    assert comm.allreduce(1) == size and comm.Get_size() == size
    comm.Free()


def communicators():
    copy = W.Dup()
    assert MPI.Comm.Compare(copy, W) == MPI.CONGRUENT
    copy.Set_name("a copy")
    assert copy.Get_name() == "a copy"
    copy.Set_info(copy.Get_info())
    use_and_free(copy, 2)
    use_and_free(W.Dup_with_info(MPI.INFO_NULL), 2)
    copy, request = W.Idup()
    request.Wait()
    use_and_free(copy, 2)
    use_and_free(W.Split(0, -ME), 2)
    use_and_free(W.Split_type(MPI.COMM_TYPE_SHARED), 2)
    group = W.Get_group()
    use_and_free(W.Create(group), 2)
    use_and_free(W.Create_group(group, 5), 2)
    half = W.Split(ME)
    between = half.Create_intercomm(0, W, OTHER, 7)
    assert between.Is_inter() and between.Get_remote_size() == 1
    between.Get_remote_group().Free()
    use_and_free(between.Merge(ME == 1), 2)
    between.Free()
    half.Disconnect()
    assert MPI.Comm.Get_parent() == MPI.COMM_NULL
    group.Free()


def topologies():
    assert MPI.Compute_dims(2, [0, 1]) == [2, 1]
    grid = W.Create_cart([2, 1], [True, False])
    assert grid.Get_topology() == MPI.CART and grid.Get_dim() == 2
    assert grid.Get_topo()[2] == [ME, 0] and grid.Get_coords(OTHER) == [OTHER, 0]
    assert grid.Get_cart_rank([OTHER, 0]) == OTHER and grid.Shift(0, 1) == (OTHER, OTHER)
    use_and_free(grid.Sub([False, True]), 1)
    MPI.COMM_SELF.Create_cart([1]).Cart_map([1])
    use_and_free(grid, 2)
    graph = W.Create_graph([1, 2], [1, 0])
    assert graph.Get_dims() == (2, 2) and graph.Get_topo() == ([1, 2], [1, 0])
    assert graph.Get_neighbors_count(OTHER) == 1 and graph.Get_neighbors(OTHER) == [ME]
    graph.Graph_map([1, 2], [1, 0])
    use_and_free(graph, 2)
    spread = W.Create_dist_graph([ME], [1], [OTHER])
    assert spread.Get_dist_neighbors_count()[:2] == (1, 1)
    assert spread.Get_dist_neighbors()[:2] == ([OTHER], [OTHER])
    use_and_free(spread, 2)


def groups():
    everybody = W.Get_group()
    mine, others = everybody.Incl([ME]), everybody.Excl([ME])
    assert everybody.Get_size() == 2 and everybody.Get_rank() == ME
    assert MPI.Group.Translate_ranks(others, [0], everybody) == [OTHER]
    both = MPI.Group.Union(mine, others)
    assert MPI.Group.Compare(both, everybody) == (MPI.IDENT if ME == 0 else MPI.SIMILAR)
    same = MPI.Group.Intersection(everybody, mine)
    assert MPI.Group.Compare(same, mine) == MPI.IDENT
    rest = MPI.Group.Difference(everybody, mine)
    turned = everybody.Range_incl([(1, 0, -1)])
    last = everybody.Range_excl([(0, 0, 1)])
    assert turned.Get_rank() == OTHER and last.Get_size() == 1
    for group in (last, turned, rest, same, both, others, mine, everybody):
        group.Free()


def datatypes():
    numbers, packed = array.array("i", range(3)), bytearray(128)
    i = MPI.INT
    for made, count in (
        (i.Create_contiguous(3), 3), (i.Create_vector(2, 2, 4), 4), (i.Create_hvector(2, 1, 12), 2),
        (i.Dup(), 1), (i.Create_subarray([4, 4], [2, 2], [1, 2]), 4),
        (i.Create_darray(2, 1, [8], [MPI.DISTRIBUTE_BLOCK], [MPI.DISTRIBUTE_DFLT_DARG], [2]), 4),
        (i.Create_indexed([2, 1], [0, 3]), 3), (i.Create_indexed_block(2, [0, 3]), 4),
        (i.Create_hindexed([2, 1], [0, 20]), 3), (i.Create_hindexed_block(2, [0, 20]), 4),
        (MPI.Datatype.Create_struct([2, 1], [0, 20], [i, i]), 3),
    ):  # fmt: skip
        made.Commit()
        assert made.Get_size() == 4 * count <= made.Pack_size(1, W)
        made.Free()
    wide = i.Create_resized(0, 12)
    assert wide.Get_extent() == (0, 12) and wide.Get_true_extent() == (0, 4)
    wide.Free()
    column = i.Create_vector(2, 1, 4)
    assert column.Get_envelope()[3] == MPI.COMBINER_VECTOR
    assert column.Get_contents()[0] == [2, 1, 4]
    column.Set_name("column")
    assert column.Get_name() == "column"
    column.Free()
    assert MPI.Datatype.Match_size(MPI.TYPECLASS_INTEGER, 4).Get_size() == 4
    MPI.Datatype.Create_f90_integer(9)
    MPI.Datatype.Create_f90_real(15, MPI.UNDEFINED)
    MPI.Datatype.Create_f90_complex(15, MPI.UNDEFINED)
    back = array.array("i", [0] * 3)
    end = i.Pack(numbers, packed, 0, W)
    i.Unpack(packed, 0, back, W)
    assert end == 12 and list(back) == [0, 1, 2]
    assert i.Pack_external_size("external32", 3) == 12
    i.Pack_external("external32", numbers, packed, 0)
    i.Unpack_external("external32", packed, 0, back)
    assert packed[7] == 1 and MPI.Get_address(back) > 0


def attributes():
    seen = []
    for there, duplicate, keyval, free in (
        (W, W.Dup, MPI.Comm.Create_keyval, MPI.Comm.Free_keyval),
        (MPI.INT, MPI.INT.Dup, MPI.Datatype.Create_keyval, MPI.Datatype.Free_keyval),
    ):

        def on_copy(there, key, value):
            seen.append("copy")
            return value

        def on_delete(*_):
            seen.append("delete")

        key = keyval(on_copy, on_delete)
        there.Set_attr(key, "a value")
        copy = duplicate()
        assert copy.Get_attr(key) == "a value"
        copy.Free()
        there.Delete_attr(key)
        assert there.Get_attr(key) is None
        free(key)
    assert seen == ["copy", "delete", "delete"] * 2, seen
    assert W.Get_attr(MPI.TAG_UB) >= 32767


def errors():
    before = W.Get_errhandler()
    W.Set_errhandler(MPI.ERRORS_RETURN)
    try:
        W.Send([array.array("i", [1]), MPI.INT], 77)
        raise AssertionError("no error")
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_RANK and error.Get_error_string()
    W.Call_errhandler(MPI.ERR_OTHER)
    W.Set_errhandler(before)
    before.Free()
    code = MPI.Add_error_code(MPI.Add_error_class())
    MPI.Add_error_string(code, "our own error")
    assert MPI.Get_error_string(code) == "our own error" and MPI.Get_error_class(code) > 0


def operations():
    seen = []

    def weigh(left, right, _):
        seen.append(1)
        a, b = memoryview(left).cast("i"), memoryview(right).cast("i")
        for index, value in enumerate(a):
            b[index] += 100 * value

    operation = MPI.Op.Create(weigh, commute=False)
    out, got = array.array("i", [ME + 1]), array.array("i", [1])
    assert not operation.Is_commutative()
    operation.Reduce_local([out, MPI.INT], [got, MPI.INT])
    assert got[0] == 1 + 100 * (ME + 1)
    W.Allreduce([out, MPI.INT], [got, MPI.INT], operation)
    assert got[0] == 102 and seen
    operation.Free()


def infos():
    info = MPI.Info.Create()
    info.Set("first", "a value")
    info.Set("second", "b")
    assert info.Get_nkeys() == 2 and info.Get_nthkey(0) == "first"
    assert info.Get("first") == "a value" and info.get("none") is None
    copy = info.Dup()
    copy.Delete("first")
    assert "first" not in copy
    copy.Free()
    info.Free()


def handles():
    for kind, handle in (
        (MPI.Comm, W), (MPI.Datatype, MPI.INT), (MPI.Op, MPI.SUM), (MPI.Info, MPI.INFO_NULL),
        (MPI.Group, MPI.GROUP_EMPTY), (MPI.Request, MPI.REQUEST_NULL), (MPI.File, MPI.FILE_NULL),
        (MPI.Message, MPI.MESSAGE_NULL), (MPI.Win, MPI.WIN_NULL),
        (MPI.Errhandler, MPI.ERRORS_RETURN),
    ):  # fmt: skip
        assert kind.f2py(handle.py2f()) == handle
    status = MPI.Status()
    status.Set_tag(7)
    assert MPI.Status.f2py(status.py2f()).Get_tag() == 7


def life():
    assert MPI.Is_initialized() and not MPI.Is_finalized() and MPI.Is_thread_main()
    assert MPI.Get_version()[0] >= 3 and MPI.Get_library_version() and MPI.Get_processor_name()
    assert MPI.Query_thread() >= 0 and MPI.Wtick() > 0 and MPI.Wtime() <= MPI.Wtime()
    MPI.Pcontrol(1)


def all_of_them():
    life()
    communicators()
    topologies()
    groups()
    datatypes()
    attributes()
    errors()
    operations()
    infos()
    handles()
