-- sequence_events: gives a position to up to `most` committed appends that have none; says how many, and the log's last position.
--
-- The row `sequencer` is locked first, and every statement of a function sees what was committed before that statement: so
-- one caller at a time gives positions, each after all that were given before. An append whose transaction commits late is found
-- late, not skipped, because it is looked for among those without a position, and not behind the last one seen.
CREATE OR REPLACE FUNCTION sequence_events(most int4, OUT numbered int4, OUT last_position int8)
LANGUAGE plpgsql AS $$
BEGIN
    numbered := 0;
    IF EXISTS (SELECT FROM pending) THEN
        PERFORM FROM fences WHERE name = 'sequencer' FOR UPDATE;
        IF NOT FOUND THEN
            RAISE EXCEPTION 'the row of the sequencer is missing in the table fences';
        END IF;
        SELECT coalesce(max(position), 0) INTO last_position FROM positions;
        WITH taken AS (
            DELETE FROM pending WHERE id IN (SELECT id FROM pending ORDER BY id LIMIT most)
            RETURNING id, stream, first, last)
        INSERT INTO positions (position, stream, first, last)
            SELECT last_position + sum(last - first + 1) OVER (ORDER BY id), stream, first, last FROM taken;
        GET DIAGNOSTICS numbered = ROW_COUNT;
    END IF;
    SELECT coalesce(max(position), 0) INTO last_position FROM positions;
END
$$;
