"""Behind a PgBouncer in transaction mode (BATON_POOLER=transaction): commands, a worker, the web."""
