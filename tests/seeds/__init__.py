"""The promises of the five seed documents, over HTTP with a scripted model: a test for each, a file for a document.

``shown_elsewhere.py`` names the tests that show a promise where another file of the suite does so already.
"""
