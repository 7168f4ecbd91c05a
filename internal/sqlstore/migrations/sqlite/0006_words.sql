-- The index of words is merged a little at a time as it grows. With the default limit of 16 segments it was merged all at
-- once, which held up every report for seconds when there were 50,000; and merging 32 at a time reads and writes each word
-- fewer times. hashsize: a batch of long calls should leave one segment, not several; in bytes.
INSERT INTO session_search (session_search, rank) VALUES ('crisismerge', 64);
INSERT INTO session_search (session_search, rank) VALUES ('automerge', 32);
INSERT INTO session_search (session_search, rank) VALUES ('hashsize', 4194304);
