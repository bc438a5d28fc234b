"""Operations: what runs, what is stuck and why, and the buttons that repair it. For operators and administrators.

The page of one instance is also its starter's, and that of whoever sees one of its tasks; the buttons on it are not.
"""
