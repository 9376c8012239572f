"""Runs: an objective worked on in steps that share one memory. ``memory`` is that memory, ``step``, ``task``,
``plan_tasks`` and ``team`` say what is to be done next, ``work`` does it in jobs, ``runs`` starts and stops them.
"""
