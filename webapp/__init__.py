"""Flask: HTTP in, HTML out."""
