-- append_events: stores each append of a batch after the head of its stream, or leaves it, and says what became of it.
--
-- s_*  one entry a stream of the batch: its id, or 0 (make it where there is none) or -1 (find it), then by its name.
-- a_*  one entry an append: its stream's place in s_*, what it expects, its key, and where its part ends in the arrays below.
-- e_*  one entry an event, append by append.
-- p_*  rows of the projections, append by append; puts come before drops.
-- o_*  one entry an append. Status 0: stored; 1: stored before under this key, up to o_version; 2: the stream is at o_version;
--      3: the key has other content, of digest o_digest, up to o_version.
--
-- One statement is one transaction. Names are taken in their order, then heads are locked in the order of their ids, so that
-- batches never wait for one another in a circle. What is compared is read under that lock. Single-row statements on purpose:
-- they cost a third of what one statement over unnested arrays costs for an append or two, and no more for a hundred.
CREATE OR REPLACE FUNCTION append_events(
    s_id int8[], s_name text[],
    a_stream int4[], a_expected int8[], a_hash bytea[], a_key text[], a_digest bytea[], a_event_end int4[],
    e_append int4[], e_version int8[], e_recorded_at int8[], e_type text[], e_key text[], e_hash bytea[], e_data bytea[],
    p_tasks tasks[] DEFAULT '{}', a_task_end int4[] DEFAULT NULL,
    p_drop_tasks text[] DEFAULT '{}', a_drop_task_end int4[] DEFAULT NULL,
    p_runs runs[] DEFAULT '{}', a_run_end int4[] DEFAULT NULL,
    p_questions questions[] DEFAULT '{}', a_question_end int4[] DEFAULT NULL,
    p_drop_questions text[] DEFAULT '{}', a_drop_question_end int4[] DEFAULT NULL,
    OUT o_status int4[], OUT o_version int8[], OUT o_stream int8[], OUT o_digest bytea[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_stream int8;
    v_version int8;
    v_hash bytea;
    v_last int4;
    v_stored boolean[];
    v_fits boolean;
    v_digest bytea;
    v_kept int8;
    t tasks;
    r runs;
    q questions;
BEGIN
    IF 0 = ANY (s_id) THEN
        INSERT INTO streams (name, version, hash, recorded_at)
            SELECT n.name, 0, '', 0 FROM unnest(s_id, s_name) AS n (id, name) WHERE n.id = 0 ORDER BY n.name
            ON CONFLICT (name) DO NOTHING;
    END IF;
    FOR i IN 1 .. cardinality(s_id) LOOP
        IF s_id[i] <= 0 THEN
            s_id[i] := (SELECT id FROM streams WHERE name = s_name[i]);
        END IF;
    END LOOP;
    IF cardinality(s_id) > 1 THEN
        PERFORM FROM streams WHERE id = ANY (s_id) ORDER BY id FOR UPDATE;
    END IF;

    FOR a IN 1 .. cardinality(a_stream) LOOP
        v_stream := s_id[a_stream[a]];
        v_last := a_event_end[a];
        SELECT version, hash INTO v_version, v_hash FROM streams WHERE id = v_stream FOR UPDATE;
        v_fits := coalesce(v_version = a_expected[a] AND (v_version = 0 OR v_hash = a_hash[a]), false);
        v_digest := NULL;
        IF a_key[a] <> '' THEN
            IF v_fits THEN
                INSERT INTO keys (stream, key, digest, version) VALUES (v_stream, a_key[a], a_digest[a], e_version[v_last])
                    ON CONFLICT (stream, key) DO NOTHING;
                v_fits := FOUND;
            END IF;
            IF NOT v_fits THEN
                SELECT digest, version INTO v_digest, v_kept FROM keys WHERE stream = v_stream AND key = a_key[a];
            END IF;
        END IF;
        o_stream[a] := v_stream;
        o_digest[a] := v_digest;
        v_stored[a] := v_fits;
        IF v_fits THEN
            UPDATE streams SET version = e_version[v_last], hash = e_hash[v_last], recorded_at = e_recorded_at[v_last]
                WHERE id = v_stream;
            INSERT INTO pending (stream, first, last) VALUES (v_stream, v_version + 1, e_version[v_last]);
            o_status[a] := 0;
            o_version[a] := e_version[v_last];
        ELSIF v_digest IS NULL THEN
            o_status[a] := 2;
            o_version[a] := coalesce(v_version, 0);
        ELSIF v_digest = a_digest[a] THEN
            o_status[a] := 1;
            o_version[a] := v_kept;
        ELSE
            o_status[a] := 3;
            o_version[a] := v_kept;
        END IF;
        CONTINUE WHEN NOT v_fits OR a_task_end IS NULL;

        FOR i IN coalesce(a_task_end[a - 1], 0) + 1 .. a_task_end[a] LOOP
            t := p_tasks[i];
            INSERT INTO tasks VALUES (t.*) ON CONFLICT (task) DO UPDATE SET
                run = t.run, stream = t.stream, node = t.node, queue = t.queue, state = t.state, attempt = t.attempt,
                worker = t.worker, due_at = t.due_at, graph = t.graph;
        END LOOP;
        FOR i IN coalesce(a_drop_task_end[a - 1], 0) + 1 .. a_drop_task_end[a] LOOP
            DELETE FROM tasks WHERE task = p_drop_tasks[i];
        END LOOP;
        FOR i IN coalesce(a_run_end[a - 1], 0) + 1 .. a_run_end[a] LOOP
            r := p_runs[i];
            INSERT INTO runs VALUES (r.*) ON CONFLICT (run) DO UPDATE SET
                stream = r.stream, thread = r.thread, graph = r.graph, fingerprint = r.fingerprint, status = r.status,
                started_at = r.started_at, changed_at = r.changed_at, version = r.version;
        END LOOP;
        FOR i IN coalesce(a_question_end[a - 1], 0) + 1 .. a_question_end[a] LOOP
            q := p_questions[i];
            INSERT INTO questions VALUES (q.*) ON CONFLICT (question) DO UPDATE SET
                run = q.run, stream = q.stream, task = q.task, node = q.node, kind = q.kind, asked_at = q.asked_at,
                version = q.version;
        END LOOP;
        FOR i IN coalesce(a_drop_question_end[a - 1], 0) + 1 .. a_drop_question_end[a] LOOP
            DELETE FROM questions WHERE question = p_drop_questions[i];
        END LOOP;
    END LOOP;

    INSERT INTO events (stream, version, recorded_at, type, key, hash, data)
        SELECT o_stream[e.append], e.version, e.recorded_at, e.type, e.key, e.hash, e.data
        FROM unnest(e_append, e_version, e_recorded_at, e_type, e_key, e_hash, e_data)
            AS e (append, version, recorded_at, type, key, hash, data)
        WHERE v_stored[e.append];
END
$$;
