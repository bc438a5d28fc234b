"""The read side: a file per screen, frozen rows, never ORM objects."""
