-- A long range of dates is found by walking the list: see wideRange in session_read.go.
DROP INDEX sessions_list;
CREATE INDEX sessions_list ON sessions (list_at, num, started_at);
