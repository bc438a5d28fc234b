"""`/api/v1`: JSON in, JSON out, for programs. The same commands and queries as the screens, the same permissions.

Errors are application/problem+json with the refusal's own name as `reason`. Callers send a bearer key, or ride on a
session and then the CSRF token in X-CSRFToken. `Idempotency-Key` is the request id of a command (R10).
"""
