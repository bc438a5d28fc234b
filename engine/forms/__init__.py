"""Forms that are deployed beside processes: form-js JSON, read into the fields of ours (docs/forms.md)."""
