# Copies FROM to TO with the text OLD replaced by NEW: a seeded bug for a test that must find it.
file(READ ${FROM} text)
string(REPLACE "${OLD}" "${NEW}" mutant "${text}")
if(mutant STREQUAL text)
  message(FATAL_ERROR "${FROM} no longer holds the line that this mutation changes: ${OLD}")
endif()
file(WRITE ${TO} "${mutant}")
