"""What people have a right to: a copy of the data kept about them, and its deletion, each within a time."""
