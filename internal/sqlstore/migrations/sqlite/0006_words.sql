-- A batch of long calls should leave one segment of the index of words, not several: bytes gathered before one is written.
INSERT INTO session_search (session_search, rank) VALUES ('hashsize', 4194304);
