"""The changes: one public function, one short transaction, one outcome."""
