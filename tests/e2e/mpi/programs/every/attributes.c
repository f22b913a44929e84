// Attributes with copy and delete callbacks, error handlers, operations of the program's own,
// infos: each callback is seen to run as often as MPI says.
#include "tests/e2e/mpi/programs/every/every.h"

static int g_copies, g_deletes;
static int g_value = 41;
static int g_state;

static int copy(void* state, void* value, void* out, int* flag) {
  CHECK(state == &g_state && value == &g_value);
  ++g_copies;
  *(void**)out = value;
  *flag = 1;
  return MPI_SUCCESS;
}
static int delete (void* state, void* value) {
  CHECK(state == &g_state && value == &g_value);
  ++g_deletes;
  return MPI_SUCCESS;
}
static int copy_comm(MPI_Comm comm, int key, void* state, void* value, void* out, int* flag) {
  CHECK(comm == W && key != MPI_KEYVAL_INVALID);
  return copy(state, value, out, flag);
}
static int delete_comm(MPI_Comm comm, int key, void* value, void* state) {
  CHECK(comm != MPI_COMM_NULL && key != MPI_KEYVAL_INVALID);
  return delete (state, value);
}
static int copy_type(MPI_Datatype type, int key, void* state, void* value, void* out, int* flag) {
  CHECK(type == MPI_INT && key != MPI_KEYVAL_INVALID);
  return copy(state, value, out, flag);
}
static int delete_type(MPI_Datatype type, int key, void* value, void* state) {
  CHECK(type != MPI_DATATYPE_NULL && key != MPI_KEYVAL_INVALID);
  return delete (state, value);
}
static int delete_window(MPI_Win win, int key, void* value, void* state) {
  CHECK(win != MPI_WIN_NULL && key != MPI_KEYVAL_INVALID);
  return delete (state, value);
}

static void expect(int copies, int deletes) {
  CHECK(g_copies == copies && g_deletes == deletes);
  g_copies = g_deletes = 0;
}

static void of_communicators(void) {
  int key, flag = 0;
  int* found = NULL;
  MPI_Comm comm;
  OK(MPI_Comm_create_keyval(copy_comm, delete_comm, &key, &g_state));
  OK(MPI_Comm_set_attr(W, key, &g_value));
  OK(MPI_Comm_dup(W, &comm));
  expect(1, 0);
  OK(MPI_Comm_get_attr(comm, key, &found, &flag));
  CHECK(flag && found == &g_value && *found == 41);
  OK(MPI_Comm_free(&comm));
  expect(0, 1);
  OK(MPI_Comm_delete_attr(W, key));
  expect(0, 1);
  OK(MPI_Comm_get_attr(W, key, &found, &flag));
  CHECK(!flag);
  OK(MPI_Comm_free_keyval(&key));
  CHECK(key == MPI_KEYVAL_INVALID);
  OK(MPI_Comm_get_attr(W, MPI_TAG_UB, &found, &flag));
  CHECK(flag && *found >= 32767);
}

static void of_datatypes(void) {
  int key, flag = 0;
  int* found = NULL;
  MPI_Datatype type;
  OK(MPI_Type_create_keyval(copy_type, delete_type, &key, &g_state));
  OK(MPI_Type_set_attr(MPI_INT, key, &g_value));
  OK(MPI_Type_dup(MPI_INT, &type));
  expect(1, 0);
  OK(MPI_Type_get_attr(type, key, &found, &flag));
  CHECK(flag && found == &g_value);
  OK(MPI_Type_free(&type));
  expect(0, 1);
  OK(MPI_Type_delete_attr(MPI_INT, key));
  expect(0, 1);
  OK(MPI_Type_free_keyval(&key));
  CHECK(key == MPI_KEYVAL_INVALID);
}

static void of_windows(void) {
  int key, flag = 0;
  _Alignas(16) int memory = 0;  // MPICH 4.0 rounds the base of a window down
  void* found = NULL;
  MPI_Win win;
  OK(MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, W, &win));
  OK(MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, delete_window, &key, &g_state));
  OK(MPI_Win_set_attr(win, key, &g_value));
  OK(MPI_Win_get_attr(win, key, &found, &flag));
  CHECK(flag && found == &g_value);
  OK(MPI_Win_delete_attr(win, key));
  expect(0, 1);
  OK(MPI_Win_set_attr(win, key, &g_value));
  OK(MPI_Win_get_attr(win, MPI_WIN_BASE, &found, &flag));
  CHECK(flag && found == &memory);
  OK(MPI_Win_free(&win));
  expect(0, 1);
  OK(MPI_Win_free_keyval(&key));
  CHECK(key == MPI_KEYVAL_INVALID);
}

void attributes(void) {
  of_communicators();
  of_datatypes();
  of_windows();
}

static int g_errors, g_last_error;
static void on_comm_error(MPI_Comm* comm, int* code, ...) {
  CHECK(*comm == W);
  ++g_errors;
  g_last_error = *code;
}
static void on_window_error(MPI_Win* win, int* code, ...) {
  CHECK(*win != MPI_WIN_NULL);
  ++g_errors;
  g_last_error = *code;
}
static void on_file_error(MPI_File* file, int* code, ...) {
  CHECK(file != NULL);
  ++g_errors;
  g_last_error = *code;
}

static void expect_error(int code) {
  CHECK(g_errors == 1 && g_last_error == code);
  g_errors = 0;
}

static void handlers_of_communicators(void) {
  int class = -1;
  MPI_Errhandler handler, old;
  OK(MPI_Comm_create_errhandler(on_comm_error, &handler));
  OK(MPI_Comm_get_errhandler(W, &old));
  CHECK(old == MPI_ERRORS_ARE_FATAL);
  OK(MPI_Comm_set_errhandler(W, handler));
  OK(MPI_Comm_call_errhandler(W, MPI_ERR_OTHER));
  expect_error(MPI_ERR_OTHER);
  const int code = MPI_Send(&class, 1, MPI_INT, 77, 1, W);
  expect_error(code);
  OK(MPI_Error_class(code, &class));
  CHECK(class == MPI_ERR_RANK);
  OK(MPI_Comm_set_errhandler(W, old));
  OK(MPI_Errhandler_free(&old));
  OK(MPI_Errhandler_free(&handler));
  CHECK(handler == MPI_ERRHANDLER_NULL);
}

static void handlers_of_windows(void) {
  MPI_Errhandler handler, found;
  MPI_Win win;
  OK(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, W, &win));
  OK(MPI_Win_create_errhandler(on_window_error, &handler));
  OK(MPI_Win_set_errhandler(win, handler));
  OK(MPI_Win_get_errhandler(win, &found));
  CHECK(found == handler);
  OK(MPI_Win_call_errhandler(win, MPI_ERR_RMA_SYNC));
  expect_error(MPI_ERR_RMA_SYNC);
  OK(MPI_Win_free(&win));
  OK(MPI_Errhandler_free(&found));
  OK(MPI_Errhandler_free(&handler));
}

static void handlers_of_files(void) {
  MPI_Errhandler handler, old, found;
  MPI_File file;
  OK(MPI_File_create_errhandler(on_file_error, &handler));
  OK(MPI_File_get_errhandler(MPI_FILE_NULL, &old));
  CHECK(old == MPI_ERRORS_RETURN);
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, handler));
  const int code = MPI_File_open(W, "/nowhere/a file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  CHECK(code != MPI_SUCCESS);
  expect_error(code);
  OK(MPI_File_get_errhandler(MPI_FILE_NULL, &found));
  CHECK(found == handler);
  OK(MPI_File_set_errhandler(MPI_FILE_NULL, old));
  OK(MPI_Errhandler_free(&handler));
}

static void codes(void) {
  int class = -1, code = -1, length = 0, found = -1;
  char text[MPI_MAX_ERROR_STRING];
  OK(MPI_Add_error_class(&class));
  OK(MPI_Add_error_code(class, &code));
  OK(MPI_Add_error_string(code, "our own error"));
  OK(MPI_Error_string(code, text, &length));
  CHECK(strcmp(text, "our own error") == 0 && length == 13);
  OK(MPI_Error_class(code, &found));
  CHECK(found == class && class > 0);
}

void error_handlers(void) {
  handlers_of_communicators();
  handlers_of_windows();
  handlers_of_files();
  codes();
}

static int g_operations;
static void last_of_both(void* in, void* inout, Count* count, MPI_Datatype* type) {
  CHECK(*type == MPI_INT);
  ++g_operations;
  int size = 0;
  MPI_Type_size_x(*type, &(MPI_Count){0});  // a call inside a call
  for (size = 0; size < *count; ++size) ((int*)inout)[size] += 100 * ((int*)in)[size];
}

void operations(void) {
  MPI_Op op;
  int is_commutative = -1, value = me + 1, result = -1;
  OK(MPI_Op_create(last_of_both, 0, &op));
  OK(MPI_Op_commutative(op, &is_commutative));
  CHECK(!is_commutative);
  OK(MPI_Allreduce(&value, &result, 1, MPI_INT, op, W));
  CHECK(result == 102);
  const int before = g_operations;
  result = 1;
  OK(MPI_Reduce_local(&value, &result, 1, MPI_INT, op));
  CHECK(result == 1 + 100 * value && g_operations == before + 1);
  OK(MPI_Op_free(&op));
  CHECK(op == MPI_OP_NULL);
}

void infos(void) {
  MPI_Info info, copied;
  int count = -1, length = -1, flag = 0;
  char key[MPI_MAX_INFO_KEY + 1], value[32];
  OK(MPI_Info_create(&info));
  OK(MPI_Info_set(info, "first", "a value"));
  OK(MPI_Info_set(info, "second", "b"));
  OK(MPI_Info_get_nkeys(info, &count));
  CHECK(count == 2);
  OK(MPI_Info_get_nthkey(info, 0, key));
  CHECK(strcmp(key, "first") == 0);
  OK(MPI_Info_get_valuelen(info, "first", &length, &flag));
  CHECK(flag && length == 7);
  OK(MPI_Info_get(info, "first", 31, value, &flag));
  CHECK(flag && strcmp(value, "a value") == 0);
  OK(MPI_Info_dup(info, &copied));
  OK(MPI_Info_delete(copied, "first"));
  OK(MPI_Info_get(copied, "first", 31, value, &flag));
  CHECK(!flag);
#if HAS_MPI_4
  length = sizeof value;
  OK(MPI_Info_get_string(info, "second", &length, value, &flag));
  CHECK(flag && length == 2 && strcmp(value, "b") == 0);
  MPI_Info of_environment;
  char* arguments[] = {"program", NULL};
  OK(MPI_Info_create_env(1, arguments, &of_environment));
  OK(MPI_Info_free(&of_environment));
#endif
  OK(MPI_Info_free(&copied));
  OK(MPI_Info_free(&info));
  CHECK(info == MPI_INFO_NULL);
}
