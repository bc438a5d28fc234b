"""Processes on the pure core alone, with a clock that the author moves: no database, no leases, no races.

`works.py` does the engine's own work, `house.py` what authors, people and workers do; `run.py` is what a test says, `plugin.py` its
fixture; `script.py` reads the steps of `baton simulate` and `play.py` plays them. tests/traces plays the same scripts on PostgreSQL.
"""
