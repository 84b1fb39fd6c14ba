"""Keys and identities are claimed by functions of their owner, whoever enqueues: then nobody who may only submit reads, changes or locks the
tables of what others have claimed. They are made by step 15 of schema.py, and are not edited once that is released."""

# The time is the database's; one who may delete a claim anyhow may say otherwise, as tests do. This and the next are called by the others alone.
_TIME = """CREATE FUNCTION lateshift.claim_time(skew interval) RETURNS timestamptz LANGUAGE sql AS $$SELECT clock_timestamp()
 + CASE WHEN has_table_privilege(session_user, 'lateshift.job_key', 'DELETE') THEN skew ELSE interval '0' END$$"""

# Whether this very transaction has written a row: one that others have written is seen only when they have committed. `written` is its xmin,
# which counts up from the transaction's own within a savepoint.
_FRESH = """CREATE FUNCTION lateshift.claimed_just_now(written xid) RETURNS boolean LANGUAGE plpgsql AS $$
 DECLARE
  this bigint := pg_current_xact_id()::text::bigint;
  later bigint := (written::text::bigint - this % 4294967296 + 4294967296) % 4294967296;
 BEGIN
  RETURN later < 2147483648 AND pg_xact_status((this + later)::text::xid8) = 'in progress';
 END $$"""

# Take a key that is free or past its window, and say whose it is now; `same`: used with these arguments. The digest it is compared with is
# told to nobody. It begins again where the key was purged in between. Primary key.
_TAKE_KEY = """CREATE FUNCTION lateshift.take_key(of_task text, key text, mine uuid, given bytea, keep interval, skew interval,
  OUT taken boolean, OUT owner uuid, OUT same boolean) LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
 DECLARE moment timestamptz := lateshift.claim_time(skew);
 BEGIN
  FOR round IN 1 .. 10 LOOP
   INSERT INTO lateshift.job_key AS k (task, text, job_id, digest, expires_at) VALUES (of_task, key, mine, given, moment + keep)
    ON CONFLICT (task, text) DO UPDATE SET job_id = excluded.job_id, digest = excluded.digest, expires_at = excluded.expires_at
    WHERE k.expires_at <= moment;
   taken := FOUND;
   IF taken THEN
    owner := mine;
    same := true;
    EXIT;
   END IF;
   SELECT k.job_id, k.digest = given INTO owner, same FROM lateshift.job_key k WHERE k.task = of_task AND k.text = key;
   EXIT WHEN FOUND;
  END LOOP;
 END $$"""

# A key that this call took, given back because the call fails; or let to the job that is there already. Primary key.
_FREE_KEY = """CREATE FUNCTION lateshift.free_key(of_task text, key text, mine uuid) RETURNS void LANGUAGE sql SECURITY DEFINER
 SET search_path = pg_catalog, pg_temp AS $$DELETE FROM lateshift.job_key
 WHERE task = of_task AND text = key AND job_id = mine AND lateshift.claimed_just_now(xmin)$$"""
_RELET_KEY = """CREATE FUNCTION lateshift.relet_key(other uuid, of_task text, key text, mine uuid) RETURNS void LANGUAGE sql
 SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$UPDATE lateshift.job_key SET job_id = other
 WHERE task = of_task AND text = key AND job_id = mine AND lateshift.claimed_just_now(xmin)$$"""

# Of identities that are locked, those whose job stands for nobody any more: by its state, by its window, or because it was cancelled.
# Primary keys.
FREE_IDENTITIES = """DELETE FROM lateshift.job_identity i WHERE i.identity = ANY({identities}) AND i.job_id <> ALL({jobs})
   AND (i.until <= {moment} OR (SELECT s.state FROM lateshift.settled s WHERE s.id = i.job_id) = 5)
   AND (SELECT i.scope = 2 OR i.scope = 1 AND j.state <> 2 FROM lateshift.job j WHERE j.id = i.job_id) IS NOT TRUE"""

# What is planned once is not planned again for each call, nor for a table that was small then.
_PLANNED = (
    "SET search_path = pg_catalog, pg_temp SET plan_cache_mode = force_generic_plan SET enable_seqscan = off"
)

# Take identities that are free, lock those that are not, and free those that stand for nobody: each a statement of its own, which sees what
# the holder of the lock before us has written. In the order of the identities, so that two callers never wait for each other in a circle.
# It begins again where one was purged in between, or freed. Primary keys.
_TAKE_IDENTITIES = f"""CREATE FUNCTION lateshift.take_identities(identities uuid[], jobs uuid[], scopes smallint[], keeps interval[],
  kept interval, skew interval) RETURNS TABLE (taken uuid, owner uuid) LANGUAGE plpgsql SECURITY DEFINER {_PLANNED} AS $$
 DECLARE
  moment timestamptz := lateshift.claim_time(skew);
  made bigint;
 BEGIN
  FOR round IN 1 .. 10 LOOP
   INSERT INTO lateshift.job_identity (identity, job_id, scope, until, expires_at)
    SELECT new.identity, new.job, new.scope, moment + new.keep, moment + greatest(new.keep, kept)
    FROM unnest(identities, jobs, scopes, keeps) AS new (identity, job, scope, keep) ORDER BY new.identity ON CONFLICT DO NOTHING;
   GET DIAGNOSTICS made = ROW_COUNT;
   IF made = cardinality(identities) THEN
    RETURN QUERY SELECT * FROM unnest(identities, jobs);
    RETURN;
   END IF;
   PERFORM 1 FROM lateshift.job_identity i WHERE i.identity = ANY(identities) ORDER BY i.identity FOR UPDATE;
   {FREE_IDENTITIES.format(identities="identities", jobs="jobs", moment="moment")};
   IF NOT FOUND AND (SELECT count(*) FROM lateshift.job_identity i WHERE i.identity = ANY(identities)) = cardinality(identities) THEN
    EXIT;
   END IF;
  END LOOP;
  RETURN QUERY SELECT i.identity, i.job_id FROM lateshift.job_identity i WHERE i.identity = ANY(identities);
 END $$"""

# An identity that this call took for a job that is not inserted. Primary keys.
_GIVE_UP = """CREATE FUNCTION lateshift.give_up_identity(given uuid, mine uuid) RETURNS void LANGUAGE sql SECURITY DEFINER
 SET search_path = pg_catalog, pg_temp AS $$DELETE FROM lateshift.job_identity
 WHERE identity = given AND job_id = mine AND lateshift.claimed_just_now(xmin)
 AND NOT EXISTS (SELECT 1 FROM lateshift.job WHERE id = mine) AND NOT EXISTS (SELECT 1 FROM lateshift.settled WHERE id = mine)$$"""

FUNCTIONS = (_TIME, _FRESH, _TAKE_KEY, _FREE_KEY, _RELET_KEY, _TAKE_IDENTITIES, _GIVE_UP)

# What may be called by whoever may enqueue.
CLAIMING = (
    "take_key(text, text, uuid, bytea, interval, interval)",
    "free_key(text, text, uuid)",
    "relet_key(uuid, text, text, uuid)",
    "take_identities(uuid[], uuid[], smallint[], interval[], interval, interval)",
    "give_up_identity(uuid, uuid)",
)
CALLED_BY_THEM = ("claim_time(interval)", "claimed_just_now(xid)")

TAKE_KEY = """SELECT taken, owner::text, same FROM lateshift.take_key(%s::text, %s::text, %s::uuid, %s::bytea, %s::interval,
 %s::interval)"""
FREE_KEY = "SELECT lateshift.free_key(%s::text, %s::text, %s::uuid)"
RELET_KEY = "SELECT lateshift.relet_key(%s::uuid, %s::text, %s::text, %s::uuid)"
TAKE_IDENTITIES = """SELECT taken::text, owner::text FROM lateshift.take_identities(%b::uuid[], %b::uuid[], %s::smallint[],
 %s::interval[], %s::interval, %s::interval)"""
GIVE_UP = "SELECT lateshift.give_up_identity(%s::uuid, %s::uuid)"
