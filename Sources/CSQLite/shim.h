#include <sqlite3.h>

/*
 * From here on text in double quotes is the name of a column or table and never a string, as standard SQL has it. Does nothing
 * before SQLite 3.29. A C function because `sqlite3_db_config` takes a variable number of arguments, which Swift cannot call.
 */
static inline void strata_take_double_quotes_for_names(sqlite3 *database) {
#ifdef SQLITE_DBCONFIG_DQS_DML
    sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DDL, 0, (int *)0);
    sqlite3_db_config(database, SQLITE_DBCONFIG_DQS_DML, 0, (int *)0);
#endif
}
