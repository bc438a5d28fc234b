"""Forms of processes: drawn from the model's fields, read and checked on the server."""
