"""What can be seen of a running installation: is it well, what did it do, what went wrong."""
