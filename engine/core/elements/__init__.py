"""What each kind of node does when a token enters it, and when its work ends."""
