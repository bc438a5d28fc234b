"""`make clients`: external-task clients of other makers, unmodified, against a real server of this engine."""
