"""People, service accounts and their keys, for administrators."""
