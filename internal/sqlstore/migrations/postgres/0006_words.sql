-- The words of a session as text, and an index of which words it has: a tsvector with the places of the words was twice as
-- large and remembered only the first 255 places of a word.
ALTER TABLE session_search RENAME COLUMN words TO places;
ALTER TABLE session_search ADD COLUMN words TEXT COLLATE "C" NOT NULL DEFAULT '';
-- lz4 is many times faster than what PostgreSQL does by itself, where the server was built with it.
DO $$ BEGIN
    ALTER TABLE session_search ALTER COLUMN words SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN NULL;
END $$;
UPDATE session_search SET words = coalesce((
    SELECT string_agg(w.lexeme, ' ' ORDER BY p.place) FROM unnest(places) AS w, unnest(w.positions) AS p (place)), '');
ALTER TABLE session_search DROP COLUMN places;
ALTER TABLE session_search ALTER COLUMN words DROP DEFAULT;
-- Which words there are. The cost, in the planner's unit, keeps it from reading the words of every session where it could
-- ask the index; an expression of the server's own functions would count as nearly free.
CREATE FUNCTION session_words (words TEXT) RETURNS TSVECTOR LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE COST 10000
    AS $$ BEGIN RETURN array_to_tsvector(string_to_array(words, ' ')); END $$;
-- The list of additions, in KB, that an insert leaves to the server's own upkeep (Store.IndexWords).
CREATE INDEX session_search_words ON session_search USING GIN (session_words(words))
    WITH (gin_pending_list_limit = 32768);
