"""What everybody has of their own: their API keys."""
