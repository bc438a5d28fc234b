"""The pure core: transition maps, and advance(definition, snapshot, trigger, now) -> effects."""
