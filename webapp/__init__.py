"""The web application: HTTP in, HTML out. It asks engine.queries, calls engine.commands, and decides nothing about processes."""
