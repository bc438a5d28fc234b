"""What `/engine-rest` reads beside external tasks: rows for the shapes of Camunda 7, for the eyes of one actor."""
