"""`make faults`: mixed traffic while everything is killed, stopped, cut and promoted; then three sources are joined.

topology.py   the servers: PostgreSQL primary and synchronous standby, PgBouncer, proxies that can go silent
processes.py  our workers and web servers, as processes that are killed and stopped
models.py     the processes that run, and what the history of a case of theirs must hold
driver.py     people, clients and publishers over HTTP; journal.py is what they sent and were answered
receivers.py  the outside: what it was called with; handlers.py writes down what ran
monkey.py     the faults, from a seed
watch.py      a connection of its own that looks at leases and notifications all the while
checker.py    joins the journal, the receivers and the rows
sabotage.py   eight ways to break the engine that must each be reported
run.py        one storm from its beginning to its verdict
"""
