"""Reading from servers that follow the primary, each person what they wrote themselves included.

``reading.read`` asks a replica that is near (``state``), or the primary for a person who wrote lately (``pinned``).
While the primary is away (``servers``), whole requests that only read are answered by one (``reading.answering``).
Nothing of this runs without ``MEMORYHUB_REPLICA_URLS``.
"""
