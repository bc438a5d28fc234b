"""`/engine-rest`: what programs written for Camunda 7 ask, answered in its words, over the commands and queries of the rest.

docs/engine-rest.md says what is served and what differs. Callers send a bearer key or a name and password (Basic); no cookie
is looked at, so no CSRF is possible. Explicit nulls are as good as nothing, unknown keys are ignored.
"""
