// Sessions, beside MPI_Init, and what is made from them. MPI-4.
#include "tests/e2e/mpi/programs/every/every.h"

#if !HAS_MPI_4
void sessions(void) {}
#else

static int g_errors;
static void on_error(MPI_Session* session, int* code, ...) {
  CHECK(*session != MPI_SESSION_NULL && *code == MPI_ERR_OTHER);
  ++g_errors;
}

static void questions(MPI_Session session) {
  int count = 0, length = 0;
  char name[MPI_MAX_PSET_NAME_LEN];
  MPI_Info info;
  OK(MPI_Session_get_num_psets(session, MPI_INFO_NULL, &count));
  CHECK(count >= 2);
  OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, NULL));
  CHECK(length > 0);
  OK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, 0, &length, name));
  OK(MPI_Session_get_pset_info(session, name, &info));
  OK(MPI_Info_free(&info));
  OK(MPI_Session_get_info(session, &info));
  OK(MPI_Info_free(&info));
}

static void handlers(MPI_Session session) {
  MPI_Errhandler handler, found;
  OK(MPI_Session_create_errhandler(on_error, &handler));
  OK(MPI_Session_set_errhandler(session, handler));
  OK(MPI_Session_get_errhandler(session, &found));
  CHECK(found == handler);
  OK(MPI_Session_call_errhandler(session, MPI_ERR_OTHER));
  CHECK(g_errors == 1);
  OK(MPI_Errhandler_free(&found));
  OK(MPI_Errhandler_free(&handler));
}

static void use_and_free(MPI_Comm* comm, int expected) {
  int sum = -1;
  OK(MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, *comm));
  CHECK(sum == expected);
  OK(MPI_Comm_free(comm));
}

static void made_from_groups(MPI_Session session) {
  MPI_Group all, mine, others;
  MPI_Comm comm;
  OK(MPI_Group_from_session_pset(session, "mpi://WORLD", &all));
  OK(MPI_Comm_create_from_group(all, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
  use_and_free(&comm, 1);
  OK(MPI_Group_incl(all, 1, &me, &mine));
  OK(MPI_Group_incl(all, 1, &other, &others));
  OK(MPI_Intercomm_create_from_groups(mine, 0, others, 0, "pair", MPI_INFO_NULL,
                                      MPI_ERRORS_ARE_FATAL, &comm));
  use_and_free(&comm, other);
  OK(MPI_Group_free(&others));
  OK(MPI_Group_free(&mine));
  OK(MPI_Group_free(&all));
}

void sessions(void) {
  MPI_Session session;
  OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
  questions(session);
  handlers(session);
  made_from_groups(session);
  OK(MPI_Session_finalize(&session));
  CHECK(session == MPI_SESSION_NULL);
}
#endif
